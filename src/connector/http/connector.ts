import { type Clock, systemClock } from "../../base/clock.ts";
import type { Duration } from "../../base/duration.ts";
import { TapeError } from "../../model/errors.ts";
import { assertMacSecret } from "../../model/fence-mac.ts";
import type { Connector, ConnectorContext } from "../../sdk/connector.ts";
import type { Semantics } from "../../sdk/effect.ts";
import { AckLost, DefiniteFailure, NotSent, type Observation } from "../../sdk/outcomes.ts";
import { assertKnownKeys, assertName, assertOneOf, durationOf } from "../../sdk/validate.ts";
import { blocks } from "./addresses.ts";
import { AddressRefused, type ReachOptions, type ResolveHost, systemResolve } from "./connect.ts";
import { type ExchangeResult, exchange, type HttpResponse, type OutgoingRequest, placeOf } from "./exchange.ts";
import { assertPlain, buildRequest, type HttpRequest, lowered } from "./request.ts";
import { type ResponseVerdict, retryAfterMs, speaksFor, verdictOn } from "./verdict.ts";

/** An observation over HTTP: the request, and what its response means. No default: a 404 may be a wrong path. */
export interface HttpObserve<A, R> {
  /** What to request. */
  readonly request: (args: A, fx: ConnectorContext) => HttpRequest;
  /** What the response means; `outcome` has the results. */
  readonly read: (response: HttpResponse, args: A, fx: ConnectorContext) => Observation<R>;
}

/** Options of an {@link httpConnector}. */
export interface HttpConnectorOptions<A, R> {
  /** Ends with "/". Requests cannot leave it. Absent: requests name whole URLs, of public hosts. Default: none. */
  readonly url?: string;
  /** The request of one attempt. Key and token are added as headers. */
  readonly request: (args: A, fx: ConnectorContext) => HttpRequest;
  /** The result of the effect; default: the body of the response. */
  readonly result?: (response: HttpResponse) => R;
  /** How to ask whether the effect happened. Default: an operator decides. */
  readonly observe?: HttpObserve<A, R>;
  /** The request that reverses the effect. Default: nothing is reversed. */
  readonly compensate?:
    | ((args: A, result: R, fx: ConnectorContext) => HttpRequest)
    | {
        readonly request: (args: A, result: R, fx: ConnectorContext) => HttpRequest;
        readonly semantics?: Semantics;
        readonly observe?: HttpObserve<{ args: A; result: R }, unknown>;
      };
  /**
   * Signs the key and the token of each request for a service of yours that has the same secret; see `fencedHandler`.
   * Default: unsigned.
   */
  readonly secret?: string;
  /** Sent with every request. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Overrides the table where the upstream means something else by a response; undefined: the table decides. Default:
   * the table.
   */
  readonly judge?: (response: HttpResponse) => ResponseVerdict | undefined;
  /** Limit for establishing the connection; when it passes, nothing was sent. Default 5 s. */
  readonly connectTimeout?: Duration;
  /** From the request to the last byte of the response; then the outcome is unknown. Default 30 s, capped by the effect's `timeout`. */
  readonly responseTimeout?: Duration;
  /** The longest response that is read. Default 1 MiB. */
  readonly maxResponseBytes?: number;
  /** Addresses and blocks that may be reached although they are not public. Default: none. */
  readonly allow?: readonly string[];
  /** PEM texts: trusted authorities, and a certificate with its key. Default: the system's authorities. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  /** Resolves host names. Default: the system's resolver. */
  readonly resolve?: ResolveHost;
  readonly clock?: Clock;
}

const keys: readonly (keyof HttpConnectorOptions<unknown, unknown>)[] = [
  "url",
  "request",
  "result",
  "observe",
  "compensate",
  "secret",
  "headers",
  "judge",
  "connectTimeout",
  "responseTimeout",
  "maxResponseBytes",
  "allow",
  "tls",
  "resolve",
  "clock",
];

const defaultResponseBytes = 1024 * 1024;
/** Enough to show why the server refused. */
const maxExcerptChars = 300;

/**
 * A connector over HTTP: one request per attempt, with the key and the token as headers, to public addresses only.
 * docs/connectors.md says which responses are definite and which leave the outcome unknown.
 *
 * @example
 * const bank = httpConnector("bank", {
 *   url: "https://bank.example/v1/",
 *   headers: { authorization: `Bearer ${token}` },
 *   request: (wire: { invoice: string; amount: number }) => ({ url: "wires", body: wire }),
 *   observe: {
 *     request: (wire) => ({ method: "GET", url: `wires/by-invoice/${encodeURIComponent(wire.invoice)}` }),
 *     read: ({ status, body }) => status === 200 ? outcome.confirmed(body) : status === 404 ? outcome.absent() : outcome.inconclusive(`status ${status}`),
 *   },
 * });
 */
export function httpConnector<A, R = unknown>(name: string, options: HttpConnectorOptions<A, R>): Connector {
  assertName("a connector", name);
  const subject = `connector ${name}`;
  assertKnownKeys(subject, options, keys);
  return new HttpConnector(name, subject, options as HttpConnectorOptions<unknown, unknown>);
}

class HttpConnector implements Connector {
  readonly name: string;
  readonly observe: Connector["observe"];
  readonly compensate: Connector["compensate"];
  readonly #options: HttpConnectorOptions<unknown, unknown>;
  readonly #base: URL | undefined;
  readonly #reach: ReachOptions;
  readonly #limits: { readonly responseMs: number; readonly responseBytes: number };

  constructor(name: string, subject: string, options: HttpConnectorOptions<unknown, unknown>) {
    this.name = name;
    this.#options = options;
    this.#base = options.url === undefined ? undefined : baseOf(subject, options.url);
    if (typeof options.request !== "function") throw bad(subject, "request", "is not a function");
    atDefinition(subject, "headers", () => lowered(options.headers ?? {}));
    atDefinition(subject, "secret", () => options.secret === undefined || assertMacSecret(options.secret));
    const { maxResponseBytes = defaultResponseBytes, tls = {} } = options;
    if (!Number.isSafeInteger(maxResponseBytes) || maxResponseBytes < 1)
      throw bad(subject, "maxResponseBytes", "is at least 1");
    assertKnownKeys(`${subject}: tls`, tls, ["ca", "cert", "key"]);
    this.#limits = {
      responseMs: timeoutOf(subject, "responseTimeout", options.responseTimeout, 30_000),
      responseBytes: maxResponseBytes,
    };
    this.#reach = {
      resolve: options.resolve ?? systemResolve,
      allow: atDefinition(subject, "allow", () => blocks(options.allow ?? [])),
      connectMs: timeoutOf(subject, "connectTimeout", options.connectTimeout, 5_000),
      tls,
      clock: options.clock ?? systemClock,
    };
    this.observe = options.observe && this.#observeBy(`${subject}: observe`, options.observe);
    this.compensate = this.#compensateBy(`${subject}: compensate`, options.compensate);
  }

  dispatch(args: unknown, fx: ConnectorContext): Promise<unknown> {
    return this.#call(fx, () => this.#options.request(args, fx));
  }

  async #call(fx: ConnectorContext, request: () => HttpRequest): Promise<unknown> {
    const outgoing = this.#prepare(fx, request);
    const received = await this.#exchange(outgoing, fx);
    const summary = `${outgoing.method} ${placeOf(outgoing.url)} answered ${received.status}`;
    const detail = received.flaw === undefined ? excerptOf(received.body) : `; ${received.flaw}`;
    switch (this.#judge(outgoing, received)) {
      case "success":
        // The effect happened, but its result was not received whole.
        if (received.flaw !== undefined) throw new AckLost(`${summary}${detail}`);
        return this.#result(received, summary);
      case "failure":
        throw new DefiniteFailure(`${summary}${detail}`, { scope: speaksFor(received.status) });
      case "not_sent":
        throw new NotSent(`${summary}${detail}`, { retryAfterMs: retryAfterMs(received, this.#reach.clock.wall()) });
      default:
        throw new AckLost(`${summary}${detail}`);
    }
  }

  /** A request that cannot be built is a definite failure: nothing was sent, and a retry would send nothing either. */
  #prepare(fx: ConnectorContext, request: () => HttpRequest): OutgoingRequest {
    try {
      return buildRequest(request(), this.#base, this.#options.headers ?? {}, fx, this.#options.secret);
    } catch (error) {
      if (error instanceof NotSent || error instanceof DefiniteFailure) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw new DefiniteFailure(`nothing was sent to ${this.name}: ${why}`, { scope: "attempt", cause: error });
    }
  }

  async #exchange(outgoing: OutgoingRequest, fx: ConnectorContext): Promise<ExchangeResult> {
    try {
      return await exchange(outgoing, this.#reach, this.#limits, fx.abortSignal);
    } catch (error) {
      if (error instanceof AddressRefused) throw new DefiniteFailure(error.message, { scope: "attempt", cause: error });
      throw error;
    }
  }

  /** A `judge` that throws has not proved that nothing happened, so the outcome is unknown. */
  #judge(outgoing: OutgoingRequest, { flaw: _, ...response }: ExchangeResult): ResponseVerdict {
    let verdict: ResponseVerdict | undefined;
    try {
      verdict = this.#options.judge?.(response);
    } catch {
      return "unknown";
    }
    return verdict ?? verdictOn(outgoing.method, response.status);
  }

  #result({ flaw: _, ...response }: ExchangeResult, summary: string): unknown {
    const { result } = this.#options;
    if (result === undefined) return response.body;
    try {
      return result(response);
    } catch (error) {
      throw new AckLost(`${summary}, which result() cannot read`, { cause: error });
    }
  }

  #observeBy<A>(
    subject: string,
    observe: HttpObserve<A, unknown>,
  ): (args: A, fx: ConnectorContext) => Promise<Observation> {
    assertKnownKeys(subject, observe, ["request", "read"]);
    if (typeof observe.request !== "function") throw bad(subject, "request", "is not a function");
    if (typeof observe.read !== "function") throw bad(subject, "read", "is not a function");
    return async (args, fx) => {
      const outgoing = this.#prepare(fx, () => observe.request(args, fx));
      const { flaw, ...response } = await this.#exchange(outgoing, fx);
      if (flaw !== undefined) throw new AckLost(flaw);
      return observe.read(response, args, fx);
    };
  }

  #compensateBy(
    subject: string,
    compensate: HttpConnectorOptions<unknown, unknown>["compensate"],
  ): Connector["compensate"] {
    if (compensate === undefined) return undefined;
    const parts = typeof compensate === "function" ? { request: compensate } : compensate;
    assertKnownKeys(subject, parts, ["request", "semantics", "observe"]);
    const { request, semantics = "non_idempotent", observe } = parts;
    if (typeof request !== "function") throw bad(subject, "request", "is not a function");
    assertOneOf(subject, "semantics", semantics, ["idempotent", "non_idempotent", "read"]);
    return {
      semantics,
      run: (args, result, fx) => this.#call(fx, () => request(args, result, fx)),
      observe: observe && this.#observeBy(`${subject}: observe`, observe),
    };
  }
}

function baseOf(subject: string, text: string): URL {
  const url = URL.parse(text);
  if (url === null) throw bad(subject, "url", "cannot be read");
  atDefinition(subject, "url", () => assertPlain(url));
  // Without it, "wires" below "…/v1" would silently mean "…/wires".
  if (!url.pathname.endsWith("/") || url.search !== "" || url.hash !== "") throw bad(subject, "url", 'ends with "/"');
  return url;
}

function atDefinition<T>(subject: string, field: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw bad(subject, field, `is refused: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function timeoutOf(subject: string, field: string, duration: Duration | undefined, otherwise: number): number {
  const ms = durationOf(subject, field, duration, otherwise);
  if (ms === 0) throw bad(subject, field, "is not a duration: a time-out of nothing");
  return ms;
}

function bad(subject: string, field: string, what: string): TapeError {
  return new TapeError("TAPE_BAD_INPUT", `${subject}: ${field} ${what}`, { field });
}

function excerptOf(body: unknown): string {
  const text = typeof body === "string" ? body : (JSON.stringify(body) ?? "");
  return text === "" ? "" : `: ${text.slice(0, maxExcerptChars).toWellFormed()}`;
}

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

/** A look by HTTP: what to ask, and what the answer says. There is no default reading: a 404 may be a wrong path. */
export interface HttpObserve<A, R> {
  readonly request: (args: A, fx: ConnectorContext) => HttpRequest;
  readonly read: (answer: HttpResponse, args: A, fx: ConnectorContext) => Observation<R>;
}

export interface HttpConnectorOptions<A, R> {
  /** Ends with "/". Requests cannot leave it. Absent: requests name whole URLs, of public hosts. */
  readonly url?: string;
  readonly request: (args: A, fx: ConnectorContext) => HttpRequest;
  /** The result of the act; default: the body of the answer. */
  readonly result?: (answer: HttpResponse) => R;
  readonly observe?: HttpObserve<A, R>;
  readonly compensate?:
    | ((args: A, result: R, fx: ConnectorContext) => HttpRequest)
    | {
        readonly request: (args: A, result: R, fx: ConnectorContext) => HttpRequest;
        readonly semantics?: Semantics;
        readonly observe?: HttpObserve<{ args: A; result: R }, unknown>;
      };
  /** Signs key and token of each request for a service of yours that has the same secret: see `fencedHandler`. */
  readonly secret?: string;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Where the other side means something else by an answer than the table says; undefined: the table decides. */
  readonly judge?: (answer: HttpResponse) => ResponseVerdict | undefined;
  /** Until the connection stands; then nothing was sent. Default 5 s. */
  readonly connectTimeout?: Duration;
  /** From the request to the last byte of the answer; then nobody knows. Default 30 s; the effect's own comes first. */
  readonly answerTimeout?: Duration;
  /** Default 1 MiB. */
  readonly maxAnswerBytes?: number;
  /** Addresses and blocks that are not public and may be reached all the same. */
  readonly allow?: readonly string[];
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
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
  "answerTimeout",
  "maxAnswerBytes",
  "allow",
  "tls",
  "resolve",
  "clock",
];

const defaultResponseBytes = 1024 * 1024;
/** Enough to see what the server did not like. */
const maxExcerptChars = 300;

/**
 * A connector that speaks HTTP: one request for one act, with its key and its token as headers, to public addresses only.
 * Which answers are definite and which leave doubt is in docs/connectors.md.
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
  const whose = `connector ${name}`;
  assertKnownKeys(whose, options, keys);
  return new HttpConnector(name, whose, options as HttpConnectorOptions<unknown, unknown>);
}

class HttpConnector implements Connector {
  readonly name: string;
  readonly observe: Connector["observe"];
  readonly compensate: Connector["compensate"];
  readonly #options: HttpConnectorOptions<unknown, unknown>;
  readonly #base: URL | undefined;
  readonly #reach: ReachOptions;
  readonly #limits: { readonly answerMs: number; readonly answerBytes: number };

  constructor(name: string, whose: string, options: HttpConnectorOptions<unknown, unknown>) {
    this.name = name;
    this.#options = options;
    this.#base = options.url === undefined ? undefined : baseOf(whose, options.url);
    if (typeof options.request !== "function") throw bad(whose, "request", "is not a function");
    atDefinition(whose, "headers", () => lowered(options.headers ?? {}));
    atDefinition(whose, "secret", () => options.secret === undefined || assertMacSecret(options.secret));
    const { maxAnswerBytes = defaultResponseBytes, tls = {} } = options;
    if (!Number.isSafeInteger(maxAnswerBytes) || maxAnswerBytes < 1)
      throw bad(whose, "maxAnswerBytes", "is at least 1");
    assertKnownKeys(`${whose}: tls`, tls, ["ca", "cert", "key"]);
    this.#limits = {
      answerMs: timeoutOf(whose, "answerTimeout", options.answerTimeout, 30_000),
      answerBytes: maxAnswerBytes,
    };
    this.#reach = {
      resolve: options.resolve ?? systemResolve,
      allow: atDefinition(whose, "allow", () => blocks(options.allow ?? [])),
      connectMs: timeoutOf(whose, "connectTimeout", options.connectTimeout, 5_000),
      tls,
      clock: options.clock ?? systemClock,
    };
    this.observe = options.observe && this.#lookBy(`${whose}: observe`, options.observe);
    this.compensate = this.#inverse(`${whose}: compensate`, options.compensate);
  }

  dispatch(args: unknown, fx: ConnectorContext): Promise<unknown> {
    return this.#act(fx, () => this.#options.request(args, fx));
  }

  async #act(fx: ConnectorContext, request: () => HttpRequest): Promise<unknown> {
    const ask = this.#ask(fx, request);
    const heard = await this.#exchange(ask, fx);
    const said = `${ask.method} ${placeOf(ask.url)} answered ${heard.status}`;
    const words = heard.flaw === undefined ? excerptOf(heard.body) : `; ${heard.flaw}`;
    switch (this.#judge(ask, heard)) {
      case "success":
        // It happened; but of what it came to we have not heard everything.
        if (heard.flaw !== undefined) throw new AckLost(`${said}${words}`);
        return this.#result(heard, said);
      case "failure":
        throw new DefiniteFailure(`${said}${words}`, { about: speaksFor(heard.status) });
      case "not_sent":
        throw new NotSent(`${said}${words}`, { afterMs: retryAfterMs(heard, this.#reach.clock.wall()) });
      default:
        throw new AckLost(`${said}${words}`);
    }
  }

  /** What cannot even be asked is refused here: nothing was sent, and nothing would be next time. */
  #ask(fx: ConnectorContext, request: () => HttpRequest): OutgoingRequest {
    try {
      return buildRequest(request(), this.#base, this.#options.headers ?? {}, fx, this.#options.secret);
    } catch (error) {
      if (error instanceof NotSent || error instanceof DefiniteFailure) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw new DefiniteFailure(`nothing was sent to ${this.name}: ${why}`, { about: "attempt", cause: error });
    }
  }

  async #exchange(ask: OutgoingRequest, fx: ConnectorContext): Promise<ExchangeResult> {
    try {
      return await exchange(ask, this.#reach, this.#limits, fx.abortSignal);
    } catch (error) {
      if (error instanceof AddressRefused) throw new DefiniteFailure(error.message, { about: "attempt", cause: error });
      throw error;
    }
  }

  /** A judge that fails, or says what is no verdict, has not said that nothing happened. */
  #judge(ask: OutgoingRequest, { flaw: _, ...answer }: ExchangeResult): ResponseVerdict {
    let verdict: ResponseVerdict | undefined;
    try {
      verdict = this.#options.judge?.(answer);
    } catch {
      return "doubt";
    }
    return verdict ?? verdictOn(ask.method, answer.status);
  }

  #result({ flaw: _, ...answer }: ExchangeResult, said: string): unknown {
    const { result } = this.#options;
    if (result === undefined) return answer.body;
    try {
      return result(answer);
    } catch (error) {
      throw new AckLost(`${said}, which result() cannot read`, { cause: error });
    }
  }

  #lookBy<A>(whose: string, look: HttpObserve<A, unknown>): (args: A, fx: ConnectorContext) => Promise<Observation> {
    assertKnownKeys(whose, look, ["request", "read"]);
    if (typeof look.request !== "function") throw bad(whose, "request", "is not a function");
    if (typeof look.read !== "function") throw bad(whose, "read", "is not a function");
    return async (args, fx) => {
      const ask = this.#ask(fx, () => look.request(args, fx));
      const { flaw, ...answer } = await this.#exchange(ask, fx);
      if (flaw !== undefined) throw new AckLost(flaw);
      return look.read(answer, args, fx);
    };
  }

  #inverse(whose: string, undo: HttpConnectorOptions<unknown, unknown>["compensate"]): Connector["compensate"] {
    if (undo === undefined) return undefined;
    const parts = typeof undo === "function" ? { request: undo } : undo;
    assertKnownKeys(whose, parts, ["request", "semantics", "observe"]);
    const { request, semantics = "non_idempotent", observe } = parts;
    if (typeof request !== "function") throw bad(whose, "request", "is not a function");
    assertOneOf(whose, "semantics", semantics, ["idempotent", "non_idempotent", "read"]);
    return {
      semantics,
      run: (args, result, fx) => this.#act(fx, () => request(args, result, fx)),
      observe: observe && this.#lookBy(`${whose}: observe`, observe),
    };
  }
}

function baseOf(whose: string, text: string): URL {
  const url = URL.parse(text);
  if (url === null) throw bad(whose, "url", "cannot be read");
  atDefinition(whose, "url", () => assertPlain(url));
  // Without it, "wires" below "…/v1" would silently mean "…/wires".
  if (!url.pathname.endsWith("/") || url.search !== "" || url.hash !== "") throw bad(whose, "url", 'ends with "/"');
  return url;
}

function atDefinition<T>(whose: string, field: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw bad(whose, field, `is refused: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function timeoutOf(whose: string, field: string, duration: Duration | undefined, otherwise: number): number {
  const ms = durationOf(whose, field, duration, otherwise);
  if (ms === 0) throw bad(whose, field, "is not a duration: a time-out of nothing");
  return ms;
}

function bad(whose: string, field: string, what: string): TapeError {
  return new TapeError("TAPE_BAD_INPUT", `${whose}: ${field} ${what}`, { field });
}

function excerptOf(body: unknown): string {
  const text = typeof body === "string" ? body : (JSON.stringify(body) ?? "");
  return text === "" ? "" : `: ${text.slice(0, maxExcerptChars).toWellFormed()}`;
}

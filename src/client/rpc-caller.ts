import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { errorFields } from "../base/reason.ts";
import { type ErrorCode, isTapeError, TapeError } from "../model/errors.ts";
import type { CallOf, ResponseOf, RouteName } from "../protocol/contract.ts";
import { errorOf, problemSchema, problemType } from "../protocol/problem.ts";
import { jsonType, type Transport, type WireRequest, type WireResponse } from "../protocol/transport.ts";
import { RequestNotSent } from "./errors.ts";
import { linesOf } from "./lines.ts";
import { badResponse, decoded, type Parts, type PreparedRequest, prepareRequest, routeOf } from "./request.ts";

export interface RpcCallerOptions {
  /** One per replica; when one fails, the next is tried. */
  readonly exchanges: readonly Transport[];
  readonly token?: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** How long a call is retried. */
  readonly retryForMs?: number;
}

export interface CallOptions {
  /** The Idempotency-Key, if the caller brings its own. */
  readonly key?: string | undefined;
  readonly retryForMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Bridges a restart or a failover; shorter than the default TTL, so that the caller can still release its leases. */
const defaultRetryMs = 20_000;
const pauses = { baseMs: 20, capMs: 2_000 };

/** Refusals that prove that nothing was done, and that a later call or another replica may succeed. */
const elsewhere: ReadonlySet<ErrorCode> = new Set(["TAPE_DRAINING", "TAPE_OVERLOADED", "TAPE_RATE_LIMITED"]);
/** Statuses of a gateway that got no response from the server. */
const gateways: ReadonlySet<number> = new Set([502, 503, 504]);

/**
 * Makes the calls of the contract. A call without a response is sent again, to the next replica, until its time is over.
 * Every route declares why that is safe, and a route that needs an idempotency key keeps it across retries. So a lost
 * response is recovered, never guessed; if that fails, the error says whether the call may have been carried out.
 */
export class RpcCaller {
  readonly #options: RpcCallerOptions;
  readonly #closing = new AbortController();
  readonly #alwaysSent: Readonly<Record<string, string>>;
  #refusing = false;
  #replica = 0;
  #open = 0;
  #idle: () => void = () => {};

  constructor(options: RpcCallerOptions) {
    this.#options = options;
    const { token } = options;
    this.#alwaysSent = { accept: jsonType, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
  }

  async call<N extends RouteName>(name: N, parts: CallOf<N>, options: CallOptions = {}): Promise<ResponseOf<N>> {
    if (this.#refusing) throw closed();
    return decoded(name, await this.send(name, prepareRequest(name, parts as Parts), options)) as ResponseOf<N>;
  }

  /** The same with a body that is JSON already; the result is JSON that is not validated. */
  async send(name: RouteName, ask: PreparedRequest, options: CallOptions = {}): Promise<unknown> {
    if (this.#closing.signal.aborted) throw closed();
    this.#open++;
    try {
      return await this.#insist(name, this.#requestOf(name, ask, options), options);
    } finally {
      this.#open--;
      if (this.#open === 0) this.#idle();
    }
  }

  /** The lines of a stream, until the server or the signal ends it. Calls `opened` once it is established. */
  async *lines<N extends RouteName>(
    name: N,
    parts: CallOf<N>,
    signal: AbortSignal,
    opened: () => void = () => {},
  ): AsyncGenerator<ResponseOf<N>> {
    if (this.#refusing) throw closed();
    const ended = AbortSignal.any([signal, this.#closing.signal]);
    const request = this.#requestOf(name, prepareRequest(name, parts as Parts), { signal: ended });
    const response = await this.#exchange()(request).catch((error: unknown) => {
      this.#next();
      throw error;
    });
    if (response.status !== 200) await this.#judge(name, response);
    if (response.body instanceof Uint8Array) throw badResponse(name, "one document instead of a stream");
    opened();
    for await (const json of linesOf(response.body, this.#options.clock, ended))
      yield decoded(name, json) as ResponseOf<N>;
  }

  /** Accepts no more calls; calls accepted before may still be sent. */
  refuse(): void {
    this.#refusing = true;
  }

  /** Sends nothing more, and waits for requests in flight. */
  async close(): Promise<void> {
    this.#refusing = true;
    this.#closing.abort();
    if (this.#open > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
  }

  #requestOf(name: RouteName, ask: PreparedRequest, options: CallOptions): WireRequest {
    const { random } = this.#options;
    const keyed = routeOf(name).repeat === "key";
    const { body } = ask;
    return {
      method: ask.method,
      url: ask.url,
      headers: {
        ...this.#alwaysSent,
        ...(body === undefined ? {} : { "content-type": jsonType }),
        ...(keyed ? { "idempotency-key": options.key ?? random.uuid() } : {}),
      },
      ...(body === undefined ? {} : { body: Buffer.from(body, "utf8") }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    };
  }

  async #insist(name: RouteName, request: WireRequest, options: CallOptions): Promise<unknown> {
    const { clock, random, log, retryForMs = defaultRetryMs } = this.#options;
    const until = clock.mono() + (options.retryForMs ?? retryForMs);
    let uncertain = false; // whether an earlier attempt may have been carried out
    for (let tries = 1; ; tries++) {
      let failure: unknown;
      let waitMs = 0;
      try {
        const response = await this.#exchange()(request);
        if (response.status === 200) return jsonOf(name, response);
        waitMs = retryAfterMs(response);
        await this.#judge(name, response);
      } catch (error) {
        if (isTapeError(error) && !elsewhere.has(error.code)) throw error;
        failure = error;
        if (!(error instanceof RequestNotSent) && !isTapeError(error)) uncertain = true;
      }
      this.#next();
      options.signal?.throwIfAborted();
      const pauseMs = Math.max(waitMs, backoffMs(tries, pauses, random));
      const lasting = failure instanceof RequestNotSent && failure.lasting;
      if (lasting || clock.mono() + pauseMs > until) throw this.#givenUp(name, failure, uncertain);
      log("debug", "client.retry", { route: name, tries, ...errorFields(failure) });
      await clock.sleep(pauseMs, options.signal);
    }
  }

  /** Throws the error that the response describes, as a TapeError if it has one of our codes. */
  async #judge(name: RouteName, response: WireResponse): Promise<never> {
    if (response.headers["content-type"]?.startsWith(problemType) === true) {
      const problem = problemSchema.safeParse(jsonOf(name, response));
      if (!problem.success) throw badResponse(name, `a refusal (${response.status}) that is not a problem document`);
      throw errorOf(problem.data);
    }
    if (gateways.has(response.status)) throw new Error(`a gateway answered ${response.status}`);
    throw badResponse(name, `status ${response.status}`);
  }

  #givenUp(name: RouteName, failure: unknown, uncertain: boolean): TapeError {
    const why = failure instanceof Error ? failure.message : String(failure);
    if (uncertain && routeOf(name).repeat !== "read") {
      const message = `${name} was sent and got no response: ${why}`;
      return new TapeError("TAPE_OUTCOME_UNKNOWN", message, { route: name }, failure);
    }
    if (isTapeError(failure)) return failure;
    return new TapeError("TAPE_STORE_UNREACHABLE", `${name}: ${why}`, { route: name }, failure);
  }

  #exchange(): Transport {
    const { exchanges } = this.#options;
    return exchanges[this.#replica % exchanges.length]!;
  }

  #next(): void {
    this.#replica++;
  }
}

function jsonOf(name: RouteName, { body }: WireResponse): unknown {
  if (!(body instanceof Uint8Array)) throw badResponse(name, "a stream instead of one document");
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8"));
  } catch {
    throw badResponse(name, "not JSON"); // without the parser's own message, which quotes the text and may contain a secret
  }
}

function retryAfterMs({ headers }: WireResponse): number {
  const seconds = Number(headers["retry-after"] ?? 0);
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0;
}

const closed = (): TapeError => new TapeError("TAPE_STORE_CLOSED", "this store handle is closed");

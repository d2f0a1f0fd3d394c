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
  /** One for each replica: the next is tried when one fails. */
  readonly exchanges: readonly Transport[];
  readonly token?: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** How long a call is repeated before it is given up. */
  readonly patienceMs?: number;
}

export interface CallOptions {
  /** The Idempotency-Key, where the caller has one of its own. */
  readonly key?: string | undefined;
  readonly patienceMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A restart or a failover goes unnoticed; shorter than the usual TTL, so that whoever waits can still give back. */
const defaultRetryMs = 20_000;
const pauses = { baseMs: 20, capMs: 2_000 };

/** Refusals that say: nothing was done, another time or another replica will do it. */
const elsewhere: ReadonlySet<ErrorCode> = new Set(["TAPE_DRAINING", "TAPE_OVERLOADED", "TAPE_RATE_LIMITED"]);
/** What a gateway answers when it could not get an answer itself. */
const gateways: ReadonlySet<number> = new Set([502, 503, 504]);

/**
 * Calls of the contract. A call without an answer is sent again, to the next replica, until its patience is over: every
 * route says why that is safe, and one that needs a key keeps the one it was given. So a lost answer is found out, never
 * guessed; when it cannot be, the error says whether anything may have been done.
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

  /** The same for whoever has the JSON of the body already; the answer is JSON that nobody has looked at. */
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

  /** The lines of a stream, until the server ends it or the signal does. `opened` is called when it stands. */
  async *lines<N extends RouteName>(
    name: N,
    parts: CallOf<N>,
    signal: AbortSignal,
    opened: () => void = () => {},
  ): AsyncGenerator<ResponseOf<N>> {
    if (this.#refusing) throw closed();
    const ended = AbortSignal.any([signal, this.#closing.signal]);
    const request = this.#requestOf(name, prepareRequest(name, parts as Parts), { signal: ended });
    const answer = await this.#exchange()(request).catch((error: unknown) => {
      this.#next();
      throw error;
    });
    if (answer.status !== 200) await this.#judge(name, answer);
    if (answer.body instanceof Uint8Array) throw badResponse(name, "one document instead of a stream");
    opened();
    for await (const json of linesOf(answer.body, this.#options.clock, ended))
      yield decoded(name, json) as ResponseOf<N>;
  }

  /** Takes no more calls; what was taken before may still be sent. */
  refuse(): void {
    this.#refusing = true;
  }

  /** Sends nothing more, and waits for what is under way. */
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
    const { clock, random, log, patienceMs = defaultRetryMs } = this.#options;
    const until = clock.mono() + (options.patienceMs ?? patienceMs);
    let heard = false; // whether some try may have been carried out without our knowing
    for (let tries = 1; ; tries++) {
      let trouble: unknown;
      let waitMs = 0;
      try {
        const answer = await this.#exchange()(request);
        if (answer.status === 200) return jsonOf(name, answer);
        waitMs = retryAfterMs(answer);
        await this.#judge(name, answer);
      } catch (error) {
        if (isTapeError(error) && !elsewhere.has(error.code)) throw error;
        trouble = error;
        if (!(error instanceof RequestNotSent) && !isTapeError(error)) heard = true;
      }
      this.#next();
      options.signal?.throwIfAborted();
      const pauseMs = Math.max(waitMs, backoffMs(tries, pauses, random));
      const lasting = trouble instanceof RequestNotSent && trouble.lasting;
      if (lasting || clock.mono() + pauseMs > until) throw this.#givenUp(name, trouble, heard);
      log("debug", "client.retry", { route: name, tries, ...errorFields(trouble) });
      await clock.sleep(pauseMs, options.signal);
    }
  }

  /** Throws what the answer says, as an error of the table where it is one of ours. */
  async #judge(name: RouteName, answer: WireResponse): Promise<never> {
    if (answer.headers["content-type"]?.startsWith(problemType) === true) {
      const problem = problemSchema.safeParse(jsonOf(name, answer));
      if (!problem.success) throw badResponse(name, `a refusal (${answer.status}) that is no problem`);
      throw errorOf(problem.data);
    }
    if (gateways.has(answer.status)) throw new Error(`a gateway answered ${answer.status}`);
    throw badResponse(name, `status ${answer.status}`);
  }

  #givenUp(name: RouteName, trouble: unknown, heard: boolean): TapeError {
    const why = trouble instanceof Error ? trouble.message : String(trouble);
    if (heard && routeOf(name).repeat !== "read") {
      const message = `${name} was sent, and no answer could be had: ${why}`;
      return new TapeError("TAPE_OUTCOME_UNKNOWN", message, { route: name }, trouble);
    }
    if (isTapeError(trouble)) return trouble;
    return new TapeError("TAPE_STORE_UNREACHABLE", `${name}: ${why}`, { route: name }, trouble);
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
    throw badResponse(name, "not JSON"); // the parser's own message quotes the text, which may hold a secret
  }
}

function retryAfterMs({ headers }: WireResponse): number {
  const seconds = Number(headers["retry-after"] ?? 0);
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0;
}

const closed = (): TapeError => new TapeError("TAPE_STORE_CLOSED", "this store handle is closed");

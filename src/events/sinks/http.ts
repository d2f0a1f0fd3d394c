import type { Agent, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { Duration } from "../../base/duration.ts";
import { network } from "../../base/network.ts";
import { blocks } from "../../connector/http/addresses.ts";
import { type ReachOptions, type ResolveHost, reach, systemResolve } from "../../connector/http/connect.ts";
import { placeOf } from "../../connector/http/exchange.ts";
import { assertPlain, lowered } from "../../connector/http/request.ts";
import { retryAfterMs } from "../../connector/http/verdict.ts";
import { TapeError } from "../../model/errors.ts";
import { durationOf } from "../../sdk/validate.ts";
import type { Delivery } from "../sink.ts";

/** How a sink reaches a server over HTTP. */
export interface HttpSinkOptions {
  /** Where events are sent. */
  readonly url: string;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** From the request to the last byte of the response. Default 15 s. */
  readonly timeout?: Duration;
  /** Addresses and blocks that may be reached although they are not public. */
  readonly allow?: readonly string[];
  /** PEM texts: trusted authorities, and a certificate with its key. Default: the system's authorities. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  /** Resolves host names. Default: the system's resolver. */
  readonly resolve?: ResolveHost;
  readonly clock?: Clock;
}

export const httpSinkKeys = ["url", "headers", "timeout", "allow", "tls", "resolve", "clock"] as const;

const connectMs = 5_000;
/** Of a response, only its status and the start of its body matter. */
const maxExcerptBytes = 512;

/**
 * Requests to one address, on connections that are kept: at-least-once knows no doubt, so an unanswered request is
 * simply sent again. Only public addresses are reached, the name is resolved by each connection once, and no redirect is
 * followed.
 */
export class HttpTarget {
  readonly url: URL;
  readonly clock: Clock;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timeoutMs: number;
  readonly #reach: ReachOptions;
  #agent: Agent | undefined;

  constructor(subject: string, options: HttpSinkOptions) {
    this.url = checked(subject, "url", () => {
      const url = new URL(options.url);
      assertPlain(url);
      return url;
    });
    this.clock = options.clock ?? systemClock;
    this.#headers = checked(subject, "headers", () => lowered(options.headers ?? {}));
    this.#timeoutMs = durationOf(subject, "timeout", options.timeout, 15_000);
    this.#reach = {
      resolve: options.resolve ?? systemResolve,
      allow: checked(subject, "allow", () => blocks(options.allow ?? [])),
      connectMs,
      tls: options.tls ?? {},
      clock: this.clock,
    };
  }

  /** The address without its query, which may contain a secret. */
  get label(): string {
    return placeOf(this.url);
  }

  /** Sends one request. The delivery is that of everything in it. */
  async post(body: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Delivery> {
    const late = new AbortController();
    const cancel = this.clock.after(this.#timeoutMs, () =>
      late.abort(new Error(`no response within ${this.#timeoutMs} ms`)),
    );
    const either = AbortSignal.any([signal, late.signal]);
    try {
      const response = await this.#request(body, headers, either);
      const excerpt = await excerptOf(response);
      const status = response.statusCode ?? 0;
      const retry = response.headers["retry-after"];
      const afterMs = retryAfterMs(
        { status, headers: retry ? { "retry-after": retry } : {}, body: "" },
        this.clock.wall(),
      );
      return deliveryOf(status, `${this.label} responded ${status}${excerpt && `: ${excerpt}`}`, afterMs);
    } catch (error) {
      return { later: either.aborted ? either.reason : error };
    } finally {
      cancel();
    }
  }

  close(): void {
    this.#agent?.destroy();
  }

  #request(body: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<IncomingMessage> {
    const { url } = this;
    const length = { "content-length": String(Buffer.byteLength(body)) };
    return new Promise((resolve, reject) => {
      const request = network.http.request({
        method: "POST",
        path: `${url.pathname}${url.search}`,
        headers: { host: url.host, ...this.#headers, ...headers, ...length },
        setHost: false,
        agent: this.#connections(),
        signal,
      });
      request.once("response", resolve);
      request.on("error", reject);
      request.end(body);
    });
  }

  /** The agent keeps connections; how one is opened is the connector's rule. */
  #connections(): Agent {
    if (this.#agent !== undefined) return this.#agent;
    const agent = new network.http.Agent({ keepAlive: true, keepAliveMsecs: 10_000, maxFreeSockets: 32 });
    const open = (_options: unknown, done: (error: Error | null, socket?: Socket) => void): undefined => {
      reach(this.url, this.#reach, new AbortController().signal).then(
        (socket) => done(null, socket),
        (error: Error) => done(error),
      );
      return undefined;
    };
    (agent as unknown as { createConnection: typeof open }).createConnection = open;
    this.#agent = agent;
    return agent;
  }
}

/** Statuses that are about the event itself, so that sending it again changes nothing. */
const refusals: ReadonlySet<number> = new Set([400, 413, 415, 422]);

/**
 * What a status means. A wrong secret or path (401, 403, 404) and an outage block the sink and lose nothing; 410 means
 * that the receiver is gone.
 */
export function deliveryOf(status: number, message: string, afterMs: number | undefined): Delivery {
  if (status >= 200 && status < 300) return "ok";
  if (status === 410) return { pause: message };
  if (refusals.has(status)) return { never: message, code: String(status) };
  return { later: message, ...(afterMs !== undefined && { afterMs }) };
}

async function excerptOf(response: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    if (size < maxExcerptBytes) chunks.push(chunk);
    size += chunk.byteLength;
    if (size > 64 * 1024) break; // which ends the connection
  }
  return Buffer.concat(chunks).subarray(0, maxExcerptBytes).toString("utf8").replaceAll(/\s+/g, " ").trim();
}

function checked<T>(subject: string, field: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TapeError("TAPE_BAD_INPUT", `${subject}: ${field}: ${why}`, { field }, error);
  }
}

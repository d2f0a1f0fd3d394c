import { type Clock, systemClock } from "../../src/base/clock.ts";
import type { Log } from "../../src/base/log.ts";
import { type Random, seededRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { Transport, WireResponse } from "../../src/protocol/transport.ts";
import type { TokenLifetimes } from "../../src/server/handler-types.ts";
import type { ServerLimits } from "../../src/server/limits.ts";
import { TapeServer } from "../../src/server/server.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openBlank } from "../blank-database.ts";

export interface Stage {
  readonly store: Store;
  readonly server: TapeServer;
  readonly lines: { level: string; event: string; fields?: Readonly<Record<string, unknown>> }[];
  close(): Promise<void>;
}

export interface StageOptions {
  readonly credentials?: "required" | "none";
  readonly clock?: Clock;
  readonly random?: Random;
  readonly limits?: Partial<ServerLimits>;
  /** Where browsers find it. */
  readonly origin?: string;
  readonly streamOrigins?: string;
  readonly lifetimes?: TokenLifetimes;
  readonly url?: string;
  /** The tenant of the server's operator. */
  readonly tenant?: string;
  readonly store?: Store;
}

/** `id.secret` of the bootstrap admin. */
export const bootstrap = `root.${"s".repeat(43)}`;

/** A server without a socket over a store of its own. */
export async function stage(options: StageOptions = {}): Promise<Stage> {
  const { credentials = "none", clock = systemClock, random = seededRandom("server"), limits = {} } = options;
  const { tenant = "default" } = options;
  const lines: Stage["lines"] = [];
  const log: Log = (level, event, fields) => lines.push({ level, event, ...(fields && { fields }) });
  const { url = "memory:" } = options;
  const open = url === "memory:" ? { open: openBlank } : {};
  const store = options.store ?? (await openStore(url, { clock, random, log, ...open }));
  const server = new TapeServer({
    ...{ store, credentials, bootstrap, limits, tenant, clock, random, log },
    identity: { owner: "server/1", label: "server" },
    version: "0.0.0-test",
    ...(options.lifetimes && { lifetimes: options.lifetimes }),
    ...(options.origin === undefined ? {} : { origin: options.origin }),
    ...(options.streamOrigins === undefined ? {} : { streamOrigins: options.streamOrigins }),
  });
  return {
    ...{ store, server, lines },
    async close() {
      server.close();
      if (options.store === undefined) await store.close();
    },
  };
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly json: unknown;
}

export interface RequestOptions {
  readonly body?: unknown;
  readonly token?: string | undefined;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One call, with JSON on both sides. */
export async function ask(
  exchange: Transport,
  method: string,
  url: string,
  asking: RequestOptions = {},
): Promise<Reply> {
  const { body, token, key, headers = {} } = asking;
  const answer = await exchange({
    ...{ method, url },
    headers: {
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(key === undefined ? {} : { "idempotency-key": key }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: new TextEncoder().encode(JSON.stringify(body)) }),
  });
  return { status: answer.status, headers: answer.headers, json: await jsonIn(answer) };
}

async function jsonIn({ body, headers }: WireResponse): Promise<unknown> {
  if (!(body instanceof Uint8Array)) throw new Error("this is a stream: read its lines");
  const text = new TextDecoder().decode(body);
  return /json/.test(headers["content-type"] ?? "") ? JSON.parse(text) : text;
}

/** The first lines of a stream, heartbeats left out; then it is let go. */
export async function firstLines({ body }: WireResponse, count: number): Promise<unknown[]> {
  if (body instanceof Uint8Array) throw new Error("this is no stream");
  const lines: unknown[] = [];
  let rest = "";
  if (count === 0) return lines;
  for await (const chunk of body) {
    rest += new TextDecoder().decode(chunk);
    const whole = rest.split("\n");
    rest = whole.pop() ?? "";
    lines.push(...whole.filter((line) => line !== "").map((line) => JSON.parse(line) as unknown));
    if (lines.length >= count) break;
  }
  return lines;
}

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, Server as NetServer } from "node:net";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import { TapeError } from "../model/errors.ts";
import type { WireAnswer, WireRequest } from "../protocol/wire.ts";
import type { BodyRoom } from "./bodies.ts";
import { tooLarge } from "./body.ts";
import type { TapeServer } from "./server.ts";

export interface ListenOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly tls?: { readonly cert: Buffer | string; readonly key: Buffer | string };
  readonly timeouts?: Partial<Timeouts>;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Timeouts {
  /** Until a request's headers are here. */
  readonly headersMs: number;
  /** Until all of it is here. */
  readonly requestMs: number;
  /** How long a connection may wait for its next request. */
  readonly idleMs: number;
}

/** Idle longer than the 60 s after which load balancers give up: so that it is they who close, not we under a request. */
export const defaultTimeouts: Timeouts = { headersMs: 10_000, requestMs: 60_000, idleMs: 75_000 };

/** Late calls on open connections get this long to hear that they must go elsewhere. */
const lingerMs = 100;

export interface Listening {
  readonly url: string;
  readonly port: number;
  /** Stops accepting, finishes what is under way, ends streams. false: some of it took longer and was cut off. */
  stop(withinMs: number): Promise<boolean>;
}

/** Carries requests to the server over HTTP/1.1, with TLS if there is a certificate. */
export async function listen(server: TapeServer, options: ListenOptions): Promise<Listening> {
  const { host, port, tls, clock, log } = options;
  const { headersMs, requestMs, idleMs } = { ...defaultTimeouts, ...options.timeouts };
  const settings = {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: Math.min(headersMs, 5_000),
  };
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    void carry(server, request, response).catch((error) => {
      log("warn", "server.cut_off", { ...errorFields(error) });
      response.destroy();
    });
  };
  const http: Server =
    tls === undefined
      ? createServer(settings, handle)
      : (createTlsServer({ ...settings, ...tls, minVersion: "TLSv1.2" }, handle) as Server);
  http.maxConnections = server.limits.connections;
  http.on("drop", () => log("warn", "server.connection_dropped", { most: server.limits.connections }));
  http.listen(port, host);
  try {
    await once(http, "listening");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TapeError("TAPE_BAD_CONFIG", `tape.server.listen: ${why}`, { host, port }, error);
  }
  const { port: bound } = http.address() as AddressInfo;
  const name = host.includes(":") ? `[${host}]` : host;
  return {
    url: `${tls === undefined ? "http" : "https"}://${name}:${bound}`,
    port: bound,
    async stop(withinMs) {
      const closed = once(http, "close");
      // Not http.close(): it would cut idle connections at once, under a request that is just being sent on one.
      NetServer.prototype.close.call(http);
      const begun = clock.mono();
      const drained = await server.drain(withinMs);
      await clock.sleep(lingerMs);
      http.closeIdleConnections();
      const over = new AbortController();
      void closed.then(() => over.abort("closed"));
      await clock.sleep(Math.max(lingerMs, withinMs - (clock.mono() - begun)), over.signal);
      http.closeAllConnections();
      await closed;
      return drained;
    },
  };
}

async function carry(server: TapeServer, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) gone.abort("the caller has gone");
  });
  const wire: WireRequest = {
    method: request.method ?? "GET",
    url: request.url ?? "/",
    headers: headersOf(request),
    signal: gone.signal,
    ...(request.socket.remoteAddress === undefined ? {} : { from: request.socket.remoteAddress }),
  };
  const answer = await server.take(wire, (room) => bodyOf(request, room));
  const closing = server.service.draining ? { connection: "close" } : {};
  await write(response, { ...answer, headers: { ...answer.headers, ...closing } });
}

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]],
    ),
  );
}

/** No more than may be is ever held in memory: room is taken for what was announced, or for each piece as it comes. */
async function bodyOf(request: IncomingMessage, room: BodyRoom): Promise<Uint8Array> {
  const announced = Number(request.headers["content-length"] ?? 0);
  if (announced > room.most) throw tooLarge(room.most);
  room.take(announced);
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > room.most) throw tooLarge(room.most);
      if (announced === 0) room.take(chunk.length);
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof TapeError) throw error;
    throw new TapeError("TAPE_BAD_INPUT", "body: broke off", { field: "body" }, error);
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

async function write(response: ServerResponse, { status, headers, body }: WireAnswer): Promise<void> {
  if (body instanceof Uint8Array) {
    response.writeHead(status, { ...headers, "content-length": body.length });
    response.end(body);
    return;
  }
  response.writeHead(status, headers);
  response.flushHeaders();
  for await (const chunk of body) {
    if (response.destroyed) return;
    if (response.write(chunk)) continue;
    // The reader is slow: nothing more is read from the store until there is room.
    const stop = new AbortController();
    await Promise.race([
      once(response, "drain", { signal: stop.signal }),
      once(response, "close", { signal: stop.signal }),
    ]).finally(() => stop.abort("written"));
  }
  response.end();
}

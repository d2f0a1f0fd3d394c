import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as SecureServer } from "node:https";
import { type AddressInfo, Server as NetServer } from "node:net";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import { TapeError } from "../model/errors.ts";
import type { WireRequest } from "../protocol/transport.ts";
import { callerAddress, type ProxyTrust, trustNone } from "./address.ts";
import type { BodyRoom } from "./bodies.ts";
import { tooLarge } from "./body.ts";
import { Connections } from "./connections.ts";
import type { TapeServer } from "./server.ts";
import { UnreadResponses } from "./unread.ts";
import { refusedForHost, respondUnreadable } from "./unreadable.ts";
import { type WriteDeps, write } from "./write.ts";

export interface ListenOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly tls?: TlsFiles;
  readonly timeouts?: Partial<Timeouts>;
  /** The address to bind, if not the host by its name. */
  readonly address?: string;
  /** Proxies that forward the addresses of their callers. */
  readonly trusted?: ProxyTrust;
  readonly clock: Clock;
  readonly log: Log;
}

/** PEM texts. */
export interface TlsFiles {
  readonly cert: Buffer | string;
  readonly key: Buffer | string;
  /** Only callers with a certificate of this authority may connect. */
  readonly clientCa?: Buffer | string;
}

export interface Timeouts {
  /** Until the TLS handshake is finished, and until a request's headers have arrived. */
  readonly headersMs: number;
  /** Until the whole request has arrived. */
  readonly requestMs: number;
  /** How long a connection may wait for its next request. */
  readonly idleMs: number;
  /** How long a reader may read nothing of its response. */
  readonly writeMs: number;
}

/** The idle timeout exceeds the 60 s of load balancers: they close first, and no request meets a closed connection. */
export const defaultTimeouts: Timeouts = {
  headersMs: 10_000,
  requestMs: 60_000,
  idleMs: 75_000,
  writeMs: 30_000,
};

/** Late calls on open connections still get a response this long, which sends them elsewhere. */
const lingerMs = 100;

export interface Listener {
  readonly url: string;
  readonly port: number;
  /** Uses this certificate for new connections; existing ones keep theirs. Throws if it is unusable. */
  renewTls(tls: TlsFiles): void;
  /** Stops accepting, finishes calls in progress, ends streams. false: some took longer and were aborted. */
  stop(withinMs: number): Promise<boolean>;
}

/** Serves HTTP/1.1, with TLS if there is a certificate. */
export async function listen(server: TapeServer, options: ListenOptions): Promise<Listener> {
  const { host, port, tls, clock, log, trusted = trustNone } = options;
  const { headersMs, requestMs, idleMs, writeMs } = { ...defaultTimeouts, ...options.timeouts };
  const settings = {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: Math.min(headersMs, 5_000),
    requireHostHeader: false, // rejected below, with a code
  };
  const { limits } = server;
  const connections = new Connections(limits, { trusted, log, clock });
  const writeDeps = { unread: new UnreadResponses(limits.unreadBytes), clock, writeMs };
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    if (request.socket.destroyed) return; // the connection was dropped after this request was read
    if (refusedForHost(request, response)) return;
    const work = () => handleRequest({ server, trusted, writeDeps, secure: tls !== undefined }, request, response);
    void connections.inTurn(request.socket, response, work).catch((error) => {
      log("warn", "server.response_aborted", { ...errorFields(error) });
      response.destroy();
    });
  };
  const http: Server =
    tls === undefined
      ? createServer(settings, handle)
      : (createTlsServer({ ...settings, ...secureOptions(tls), handshakeTimeout: headersMs }, handle) as Server);
  http.on("connection", (socket) => connections.admit(socket));
  respondUnreadable(http, (socket) => connections.isResponding(socket));
  http.listen(port, options.address ?? host);
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
    renewTls: (renewed) => (http as Partial<SecureServer>).setSecureContext?.(secureOptions(renewed)),
    async stop(withinMs) {
      const closed = once(http, "close");
      // Not http.close(): it would close idle connections at once, even if a request is just being sent on one.
      NetServer.prototype.close.call(http);
      const startedAt = clock.mono();
      const drained = await server.drain(withinMs);
      await clock.sleep(lingerMs);
      http.closeIdleConnections();
      const over = new AbortController();
      void closed.then(() => over.abort("closed"));
      await clock.sleep(Math.max(lingerMs, withinMs - (clock.mono() - startedAt)), over.signal);
      http.closeAllConnections();
      await closed;
      return drained;
    },
  };
}

function secureOptions({ cert, key, clientCa }: TlsFiles) {
  const client = clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: true };
  return { cert, key, ...client, minVersion: "TLSv1.2" as const };
}

/** Two years, as browsers' preload lists require: a browser that used TLS once never connects without it. */
const strictTls = { "strict-transport-security": "max-age=63072000" };

interface RequestDeps {
  readonly secure: boolean;
  readonly server: TapeServer;
  readonly trusted: ProxyTrust;
  readonly writeDeps: WriteDeps;
}

async function handleRequest(
  { server, trusted, writeDeps, secure }: RequestDeps,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  let gone: AbortController | undefined;
  const { remoteAddress } = request.socket;
  const wire: WireRequest = {
    method: request.method ?? "GET",
    url: request.url ?? "/",
    headers: headersOf(request),
    /** Created when a call first waits for it: most calls never do. */
    get signal() {
      gone ??= abortedWith(response);
      return gone.signal;
    },
    ...(remoteAddress === undefined ? {} : { from: callerAddress(remoteAddress, request.headers, trusted) }),
  };
  const { response: result, written } = await server.take(wire, (room) => bodyOf(request, room));
  try {
    const closing = server.service.draining ? { connection: "close" } : {};
    const headers = { ...result.headers, ...(secure ? strictTls : {}), ...closing };
    await write(response, { ...result, headers }, writeDeps);
  } finally {
    written();
  }
}

function abortedWith(response: ServerResponse): AbortController {
  const gone = new AbortController();
  const abort = (): void => {
    if (!response.writableFinished) gone.abort("the caller disconnected");
  };
  if (response.closed) abort();
  else response.once("close", abort);
  return gone;
}

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  const held: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined) held[name] = typeof value === "string" ? value : value.join(", ");
  }
  return held;
}

/** Bounds the memory: space is taken for the announced length, or for each chunk as it arrives. */
async function bodyOf(request: IncomingMessage, room: BodyRoom): Promise<Uint8Array> {
  const announced = Number(request.headers["content-length"] ?? 0);
  if (announced > room.maxBytes) throw tooLarge(room.maxBytes);
  room.take(announced);
  const chunks: Buffer[] = [];
  let size = 0;
  const take = (chunk: Buffer): void => {
    size += chunk.length;
    if (size > room.maxBytes) throw tooLarge(room.maxBytes);
    if (announced === 0) room.take(chunk.length);
    chunks.push(chunk);
  };
  // By events, because an async iterator costs more than the rest of a small call's transport.
  await new Promise<void>((resolve, reject) => {
    const incomplete = (error?: unknown): void =>
      reject(new TapeError("TAPE_BAD_INPUT", "body: incomplete", { field: "body" }, error));
    const onData = (chunk: Buffer): void => {
      try {
        take(chunk);
      } catch (error) {
        request.off("data", onData).pause(); // nothing more is read; the refusal closes the connection
        reject(error);
      }
    };
    request.on("data", onData);
    request.once("end", resolve);
    request.once("error", incomplete);
    request.once("close", () => incomplete());
  });
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as SecureServer } from "node:https";
import { type AddressInfo, Server as NetServer } from "node:net";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import { TapeError } from "../model/errors.ts";
import type { WireRequest } from "../protocol/transport.ts";
import { callerAddress, type Trusted, trustNone } from "./address.ts";
import type { BodyRoom } from "./bodies.ts";
import { tooLarge } from "./body.ts";
import { Connections } from "./connections.ts";
import type { TapeServer } from "./server.ts";
import { UnreadResponses } from "./unread.ts";
import { refusedForHost, respondUnreadable } from "./unreadable.ts";
import { type Paper, write } from "./write.ts";

export interface ListenOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly tls?: TlsFiles;
  readonly timeouts?: Partial<Timeouts>;
  /** What to bind, if not the host by its name. */
  readonly address?: string;
  /** Proxies that say whom they speak for. */
  readonly trusted?: Trusted;
  readonly clock: Clock;
  readonly log: Log;
}

/** PEM texts. */
export interface TlsFiles {
  readonly cert: Buffer | string;
  readonly key: Buffer | string;
  /** Only callers with a certificate of this authority get a connection. */
  readonly clientCa?: Buffer | string;
}

export interface Timeouts {
  /** Until a connection's keys are agreed on, and until a request's headers are here. */
  readonly headersMs: number;
  /** Until all of it is here. */
  readonly requestMs: number;
  /** How long a connection may wait for its next request. */
  readonly idleMs: number;
  /** How long a reader may take nothing of what is written for it. */
  readonly writeMs: number;
}

/** Idle longer than the 60 s after which load balancers give up: so that it is they who close, not we under a request. */
export const defaultTimeouts: Timeouts = {
  headersMs: 10_000,
  requestMs: 60_000,
  idleMs: 75_000,
  writeMs: 30_000,
};

/** Late calls on open connections get this long to hear that they must go elsewhere. */
const lingerMs = 100;

export interface Listener {
  readonly url: string;
  readonly port: number;
  /** New connections are shown this certificate; those that stand keep theirs. Throws if it cannot be used. */
  renewTls(tls: TlsFiles): void;
  /** Stops accepting, finishes what is under way, ends streams. false: some of it took longer and was cut off. */
  stop(withinMs: number): Promise<boolean>;
}

/** Carries requests to the server over HTTP/1.1, with TLS if there is a certificate. */
export async function listen(server: TapeServer, options: ListenOptions): Promise<Listener> {
  const { host, port, tls, clock, log, trusted = trustNone } = options;
  const { headersMs, requestMs, idleMs, writeMs } = { ...defaultTimeouts, ...options.timeouts };
  const settings = {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: Math.min(headersMs, 5_000),
    requireHostHeader: false, // refused below, with a code
  };
  const { limits } = server;
  const connections = new Connections(limits, { trusted, log, clock });
  const paper = { unread: new UnreadResponses(limits.answersBytes), clock, writeMs };
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    if (request.socket.destroyed) return; // it was thrown out, and this was read before
    if (refusedForHost(request, response)) return;
    const work = () => handleRequest({ server, trusted, paper, secure: tls !== undefined }, request, response);
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
  respondUnreadable(http, (socket) => connections.answering(socket));
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

function secureOptions({ cert, key, clientCa }: TlsFiles) {
  const asked = clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: true };
  return { cert, key, ...asked, minVersion: "TLSv1.2" as const };
}

/** Two years, as browsers' lists ask for: whoever came here once by TLS never comes without. */
const onlyTls = { "strict-transport-security": "max-age=63072000" };

interface Carrier {
  readonly secure: boolean;
  readonly server: TapeServer;
  readonly trusted: Trusted;
  readonly paper: Paper;
}

async function handleRequest(
  { server, trusted, paper, secure }: Carrier,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) gone.abort("the caller has gone");
  });
  const { remoteAddress } = request.socket;
  const wire: WireRequest = {
    method: request.method ?? "GET",
    url: request.url ?? "/",
    headers: headersOf(request),
    signal: gone.signal,
    ...(remoteAddress === undefined ? {} : { from: callerAddress(remoteAddress, request.headers, trusted) }),
  };
  const { answer, written } = await server.take(wire, (room) => bodyOf(request, room));
  try {
    const closing = server.service.draining ? { connection: "close" } : {};
    const headers = { ...answer.headers, ...(secure ? onlyTls : {}), ...closing };
    await write(response, { ...answer, headers }, paper);
  } finally {
    written();
  }
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

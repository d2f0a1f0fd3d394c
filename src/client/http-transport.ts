import type { ClientRequest, IncomingMessage } from "node:http";
import type { LookupFunction } from "node:net";
import { promisify } from "node:util";
import type { Clock } from "../base/clock.ts";
import { loopbackAddresses } from "../base/loopback.ts";
import { network } from "../base/network.ts";
import { linesType, type Transport, type WireRequest, type WireResponse } from "../protocol/transport.ts";
import type { Address } from "./address.ts";
import { RequestNotSent, ResponseTooLarge } from "./errors.ts";

/** Certificates of a TLS connection to a server. */
export interface TlsOptions {
  /** The only certificates to trust, as PEM. Default: those of the system. */
  readonly ca?: string;
  /** The client's own certificate, for servers that require one. */
  readonly cert?: string;
  readonly key?: string;
}

export interface HttpOptions {
  readonly address: Address;
  readonly clock: Clock;
  readonly tls?: TlsOptions;
  /** Limit for establishing the connection. */
  readonly connectMs?: number;
  /** From the request to the last byte of the response; for a stream, to its first byte. */
  readonly responseMs?: number;
  /** Whether large bodies are compressed. Default: only if the server is another machine. */
  readonly compress?: boolean;
}

/** A transport over persistent connections, and how to close them. */
export interface HttpTransport {
  readonly exchange: Transport;
  close(): void;
}

const defaultConnectMs = 5_000;
/** Longer than any transaction of a store, and longer than any wait that a route allows. */
const defaultResponseMs = 35_000;
/** Below this size compression costs more than it saves. */
const minCompressedBytes = 4 * 1024;
/** Larger than any page of any list; an endless response must not fill the memory. */
const maxResponseBytes = 512 * 1024 * 1024;

/** HTTP/1.1 over persistent connections. Throws {@link RequestNotSent} if certainly nothing was sent. */
export function httpExchange(options: HttpOptions): HttpTransport {
  const { address, clock, tls = {}, connectMs = defaultConnectMs, responseMs = defaultResponseMs } = options;
  const compress = options.compress ?? !address.loopback;
  const kept = { keepAlive: true, scheduling: "lifo" as const };
  // TLS 1.2 at least, with name checks; no option weakens this.
  const secured = { ...kept, ...tls, minVersion: "TLSv1.2" as const, rejectUnauthorized: true };
  const agent = address.secure ? new network.https.Agent(secured) : new network.http.Agent(kept);
  // A token may go in clear text to this machine only. A name proves nothing, so it is resolved and must be loopback.
  const found = address.named ? { lookup: loopbackLookup } : {};
  const open = address.secure ? network.https.request : network.http.request;

  const exchange: Transport = async (request) => {
    const body = request.body;
    const zipped = compress && body !== undefined && body.length >= minCompressedBytes;
    const sent = zipped ? await promisify(network.zlib.gzip)(body) : body;
    const headers: Record<string, string> = {
      ...request.headers,
      ...(sent === undefined ? {} : { "content-length": String(sent.length) }),
      ...(zipped ? { "content-encoding": "gzip" } : {}),
      ...(compress ? { "accept-encoding": "gzip" } : {}),
    };
    return new Promise<WireResponse>((resolve, reject) => {
      const outgoing = open({
        host: address.host,
        port: address.port,
        method: request.method,
        path: `${address.base}${request.url}`,
        headers,
        agent,
        ...found,
      });
      const cancel = watch(
        outgoing,
        request,
        { clock, connectMs, responseMs, event: address.secure ? "secureConnect" : "connect" },
        reject,
      );
      outgoing.on("response", (response) => {
        const streamed = response.headers["content-type"]?.startsWith(linesType) === true;
        if (streamed) {
          cancel();
          resolve(responseOf(response, response));
          return;
        }
        whole(response).then(
          (bytes) => {
            cancel();
            resolve(responseOf(response, bytes));
          },
          (error: unknown) => {
            cancel();
            reject(error);
          },
        );
      });
      outgoing.end(sent);
    });
  };
  return { exchange, close: () => agent.destroy() };
}

interface WatchOptions {
  readonly clock: Clock;
  readonly connectMs: number;
  readonly responseMs: number;
  readonly event: "connect" | "secureConnect";
}

/** Classifies a failure: before the connection is established nothing was sent, afterwards the outcome is unknown. */
function watch(
  outgoing: ClientRequest,
  request: WireRequest,
  { clock, connectMs, responseMs, event }: WatchOptions,
  reject: (error: unknown) => void,
): () => void {
  let standing = false;
  const stops: (() => void)[] = [];
  const cancel = (): void => {
    for (const stop of stops.splice(0)) stop();
  };
  stops.push(
    clock.after(responseMs, () => outgoing.destroy(new ResponseTooLarge(`no response within ${responseMs} ms`))),
  );
  outgoing.on("socket", (socket) => {
    if (!socket.connecting) {
      standing = true; // a persistent one: the server may close it while we send
      return;
    }
    const hurry = clock.after(connectMs, () =>
      outgoing.destroy(new RequestNotSent(`no connection within ${connectMs} ms`)),
    );
    stops.push(hurry);
    socket.once(event, () => {
      standing = true;
      hurry();
    });
  });
  outgoing.on("error", (error: Error & { code?: string }) => {
    cancel();
    const unsent = !standing && !(error instanceof RequestNotSent);
    reject(unsent ? new RequestNotSent(error.message || (error.code ?? "no connection"), error) : error);
  });
  const { signal } = request;
  if (signal !== undefined) {
    const stop = (): void => void outgoing.destroy(new Error("the caller has aborted"));
    if (signal.aborted) stop();
    // Stays registered after the response starts, because it also ends a stream.
    else signal.addEventListener("abort", stop, { once: true });
    outgoing.on("close", () => signal.removeEventListener("abort", stop));
  }
  return cancel;
}

function responseOf(response: IncomingMessage, body: WireResponse["body"]): WireResponse {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(response.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return { status: response.statusCode ?? 0, headers, body };
}

async function whole(response: IncomingMessage): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxResponseBytes) throw new Error(`the response is longer than ${maxResponseBytes} bytes`);
    chunks.push(chunk);
  }
  if (!response.complete) throw new Error("the answer broke off");
  const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
  if (response.headers["content-encoding"] !== "gzip") return bytes;
  return promisify(network.zlib.gunzip)(bytes, { maxOutputLength: maxResponseBytes });
}

/** Replaces Node's lookup: refuses a name unless all its addresses are loopback addresses. */
const loopbackLookup: LookupFunction = (name, options, done) => {
  void loopbackAddresses(name).then((addresses) => {
    const all = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    const [first] = all;
    if (first === undefined)
      done(new Error(`${name} is not this machine, and a token is not sent there in clear text`), []);
    else if (options.all === true) done(null, all);
    else done(null, first.address, first.family);
  });
};

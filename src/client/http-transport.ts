import type { ClientRequest, IncomingMessage } from "node:http";
import type { LookupFunction } from "node:net";
import { promisify } from "node:util";
import type { Clock } from "../base/clock.ts";
import { loopbackAddresses } from "../base/loopback.ts";
import { network } from "../base/network.ts";
import { linesType, type Transport, type WireRequest, type WireResponse } from "../protocol/transport.ts";
import type { Address } from "./address.ts";
import { RequestNotSent, ResponseTooLarge } from "./errors.ts";

export interface TlsOptions {
  /** Certificates to trust beside nobody else's, as PEM. Default: those of the system. */
  readonly ca?: string;
  /** The client's own, where the other side asks for one. */
  readonly cert?: string;
  readonly key?: string;
}

export interface HttpOptions {
  readonly address: Address;
  readonly clock: Clock;
  readonly tls?: TlsOptions;
  /** Until the connection stands. */
  readonly connectMs?: number;
  /** From the request to the last byte of the answer; a stream: to its first byte. */
  readonly answerMs?: number;
  /** Whether large bodies travel compressed. Default: where the other side is another machine. */
  readonly compress?: boolean;
}

/** An exchange over sockets that are kept, and how to let go of them. */
export interface HttpTransport {
  readonly exchange: Transport;
  close(): void;
}

const defaultConnectMs = 5_000;
/** Longer than any transaction of a store, and than the waits that a route allows. */
const defaultResponseMs = 35_000;
/** Below this compressing costs more than it saves. */
const minCompressedBytes = 4 * 1024;
/** More than any page of any listing; an answer without end must not fill the memory. */
const maxResponseBytes = 512 * 1024 * 1024;

/** HTTP/1.1 over kept connections. Throws {@link RequestNotSent} where it is certain that nothing has left. */
export function httpExchange(options: HttpOptions): HttpTransport {
  const { address, clock, tls = {}, connectMs = defaultConnectMs, answerMs = defaultResponseMs } = options;
  const compress = options.compress ?? !address.loopback;
  const kept = { keepAlive: true, scheduling: "lifo" as const };
  // TLS 1.2 at least, names checked, nothing else to choose: there is no way down.
  const secured = { ...kept, ...tls, minVersion: "TLSv1.2" as const, rejectUnauthorized: true };
  const agent = address.secure ? new network.https.Agent(secured) : new network.http.Agent(kept);
  // A token may go in clear to this machine alone, and a name is only that: it is resolved here, and must lead here.
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
      const asked = open({
        host: address.host,
        port: address.port,
        method: request.method,
        path: `${address.base}${request.url}`,
        headers,
        agent,
        ...found,
      });
      const cancel = watch(
        asked,
        request,
        { clock, connectMs, answerMs, event: address.secure ? "secureConnect" : "connect" },
        reject,
      );
      asked.on("response", (response) => {
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
      asked.end(sent);
    });
  };
  return { exchange, close: () => agent.destroy() };
}

interface WatchOptions {
  readonly clock: Clock;
  readonly connectMs: number;
  readonly answerMs: number;
  readonly event: "connect" | "secureConnect";
}

/** Says what a failure means: before the connection stands nothing has left, afterwards nobody knows. */
function watch(
  asked: ClientRequest,
  request: WireRequest,
  { clock, connectMs, answerMs, event }: WatchOptions,
  reject: (error: unknown) => void,
): () => void {
  let standing = false;
  const stops: (() => void)[] = [];
  const cancel = (): void => {
    for (const stop of stops.splice(0)) stop();
  };
  stops.push(clock.after(answerMs, () => asked.destroy(new ResponseTooLarge(`no answer within ${answerMs} ms`))));
  asked.on("socket", (socket) => {
    if (!socket.connecting) {
      standing = true; // a kept one: it may have been closed at the other end as we send
      return;
    }
    const hurry = clock.after(connectMs, () =>
      asked.destroy(new RequestNotSent(`no connection within ${connectMs} ms`)),
    );
    stops.push(hurry);
    socket.once(event, () => {
      standing = true;
      hurry();
    });
  });
  asked.on("error", (error: Error & { code?: string }) => {
    cancel();
    const unsent = !standing && !(error instanceof RequestNotSent);
    reject(unsent ? new RequestNotSent(error.message || (error.code ?? "no connection"), error) : error);
  });
  const { signal } = request;
  if (signal !== undefined) {
    const stop = (): void => void asked.destroy(new Error("the caller has gone"));
    if (signal.aborted) stop();
    // Not let go of with the others: a stream is ended by it.
    else signal.addEventListener("abort", stop, { once: true });
    asked.on("close", () => signal.removeEventListener("abort", stop));
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
    if (size > maxResponseBytes) throw new Error(`the answer is longer than ${maxResponseBytes} bytes`);
    chunks.push(chunk);
  }
  if (!response.complete) throw new Error("the answer broke off");
  const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
  if (response.headers["content-encoding"] !== "gzip") return bytes;
  return promisify(network.zlib.gunzip)(bytes, { maxOutputLength: maxResponseBytes });
}

/** In place of Node's own: refuses a name whose addresses are not all loopback ones. */
const loopbackLookup: LookupFunction = (name, options, done) => {
  void loopbackAddresses(name).then((addresses) => {
    const all = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    const [first] = all;
    if (first === undefined) done(new Error(`${name} is not this machine, and a token is not sent there in clear`), []);
    else if (options.all === true) done(null, all);
    else done(null, first.address, first.family);
  });
};

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { network } from "../../base/network.ts";
import { AckLost, NotSent } from "../../sdk/outcomes.ts";
import { messageOf, type ReachOptions, reach } from "./connect.ts";

/** A request that is ready to send. */
export interface OutgoingRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
}

/** A response of the upstream. */
export interface HttpResponse {
  /** The status code. */
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON where the server says so, otherwise text. */
  readonly body: unknown;
}

export interface ExchangeLimits {
  readonly responseMs: number;
  readonly responseBytes: number;
}

/** `flaw`: why the body is incomplete or unreadable. The status is valid all the same. */
export type ExchangeResult = HttpResponse & { readonly flaw: string | undefined };

/**
 * One request, one connection, one response. Every failure before the connection is established is NotSent; every failure
 * after it is AckLost. Connections are not reused: on a reused connection, a request that the server never read looks the
 * same as one that it accepted and did not answer.
 */
export async function exchange(
  outgoing: OutgoingRequest,
  by: ReachOptions,
  limits: ExchangeLimits,
  signal: AbortSignal,
): Promise<ExchangeResult> {
  const socket = await reach(outgoing.url, by, signal);
  if (signal.aborted) {
    socket.destroy();
    throw new NotSent("cancelled before it was sent", { cause: signal.reason });
  }
  const over = new AbortController();
  const cancel = by.clock.after(limits.responseMs, () =>
    over.abort(new Error(`no response within ${limits.responseMs} ms`)),
  );
  const stop = (event: Event): void => void socket.destroy((event.target as AbortSignal).reason);
  for (const one of [signal, over.signal]) one.addEventListener("abort", stop, { once: true });
  try {
    const incoming = await send(outgoing, socket);
    return await readResponse(incoming, limits.responseBytes);
  } catch (error) {
    const why = over.signal.aborted ? over.signal.reason : signal.aborted ? signal.reason : error;
    throw new AckLost(`${outgoing.method} ${placeOf(outgoing.url)} was sent and not answered: ${messageOf(why)}`, {
      cause: why,
    });
  } finally {
    cancel();
    signal.removeEventListener("abort", stop);
    socket.destroy();
  }
}

/** Leaves out the query, which may contain secrets that must not reach a journal. */
export const placeOf = (url: URL): string => `${url.origin}${url.pathname}`;

function send(outgoing: OutgoingRequest, socket: Socket): Promise<IncomingMessage> {
  const { method, url, headers, body } = outgoing;
  return new Promise((resolve, reject) => {
    const request = network.http.request({
      method,
      path: `${url.pathname}${url.search}`,
      headers: { host: url.host, ...headers, connection: "close" },
      setHost: false,
      createConnection: () => socket,
    });
    request.once("response", resolve);
    request.on("error", reject);
    request.once("close", () => reject(new Error("the connection was closed")));
    request.end(body);
  });
}

async function readResponse(incoming: IncomingMessage, maxBytes: number): Promise<ExchangeResult> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  let flaw: string | undefined;
  try {
    for await (const chunk of incoming as AsyncIterable<Uint8Array>) {
      size += chunk.byteLength;
      if (size > maxBytes) {
        flaw = `the response is longer than ${maxBytes} bytes`;
        break; // which destroys the connection
      }
      chunks.push(chunk);
    }
    if (flaw === undefined && !incoming.complete) flaw = "the response was cut off";
  } catch (error) {
    flaw = `the response was cut off: ${messageOf(error)}`;
  }
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  const read = bodyOf(Buffer.concat(chunks), headers);
  return { status: incoming.statusCode ?? 0, headers, body: read.body, flaw: flaw ?? read.flaw };
}

function bodyOf(bytes: Buffer, headers: Readonly<Record<string, string>>): { body: unknown; flaw?: string } {
  const encoding = headers["content-encoding"] ?? "identity";
  // The request accepts no encoding. Unpacking one that was sent all the same would let a few bytes become gigabytes.
  if (encoding !== "identity") return { body: undefined, flaw: `the response is encoded as ${encoding}` };
  const text = bytes.toString("utf8");
  if (!/^application\/([\w.-]+\+)?json\b/i.test(headers["content-type"] ?? "")) return { body: text };
  if (text === "") return { body: undefined };
  try {
    return { body: JSON.parse(text) };
  } catch {
    return { body: text, flaw: "the response claims to be JSON and is not" };
  }
}

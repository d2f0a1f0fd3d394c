import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { network } from "../../base/network.ts";
import { AckLost, NotSent } from "../../sdk/outcomes.ts";
import { messageOf, type ReachOptions, reach } from "./connect.ts";

/** A request, ready to be sent. */
export interface OutgoingRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
}

/** What came back. */
export interface HttpResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON where the server says so, otherwise text. */
  readonly body: unknown;
}

export interface ExchangeLimits {
  readonly answerMs: number;
  readonly answerBytes: number;
}

/** `flaw`: why the body is not all that the server wanted to say. The status stands all the same. */
export type ExchangeResult = HttpResponse & { readonly flaw: string | undefined };

/**
 * One request, one connection, one answer. Until the connection stands everything that goes wrong is NotSent; from then on
 * everything is AckLost. Connections are not kept: on a reused one, nobody can tell a request that the server closed the
 * door on from one that it took and did not answer.
 */
export async function exchange(
  ask: OutgoingRequest,
  by: ReachOptions,
  limits: ExchangeLimits,
  signal: AbortSignal,
): Promise<ExchangeResult> {
  const socket = await reach(ask.url, by, signal);
  if (signal.aborted) {
    socket.destroy();
    throw new NotSent("called off before it was sent", { cause: signal.reason });
  }
  const over = new AbortController();
  const cancel = by.clock.after(limits.answerMs, () => over.abort(new Error(`no answer within ${limits.answerMs} ms`)));
  const stop = (event: Event): void => void socket.destroy((event.target as AbortSignal).reason);
  for (const one of [signal, over.signal]) one.addEventListener("abort", stop, { once: true });
  try {
    const incoming = await send(ask, socket);
    return await readResponse(incoming, limits.answerBytes);
  } catch (error) {
    const why = over.signal.aborted ? over.signal.reason : signal.aborted ? signal.reason : error;
    throw new AckLost(`${ask.method} ${placeOf(ask.url)} was sent and not answered: ${messageOf(why)}`, { cause: why });
  } finally {
    cancel();
    signal.removeEventListener("abort", stop);
    socket.destroy();
  }
}

/** Without the query: it may hold what nobody should find in a journal. */
export const placeOf = (url: URL): string => `${url.origin}${url.pathname}`;

function send(ask: OutgoingRequest, socket: Socket): Promise<IncomingMessage> {
  const { method, url, headers, body } = ask;
  return new Promise((resolve, reject) => {
    const outgoing = network.http.request({
      method,
      path: `${url.pathname}${url.search}`,
      headers: { host: url.host, ...headers, connection: "close" },
      setHost: false,
      createConnection: () => socket,
    });
    outgoing.once("response", resolve);
    outgoing.on("error", reject);
    outgoing.once("close", () => reject(new Error("the connection was closed")));
    outgoing.end(body);
  });
}

async function readResponse(incoming: IncomingMessage, most: number): Promise<ExchangeResult> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  let flaw: string | undefined;
  try {
    for await (const chunk of incoming as AsyncIterable<Uint8Array>) {
      size += chunk.byteLength;
      if (size > most) {
        flaw = `the answer is longer than ${most} bytes`;
        break; // which destroys the connection
      }
      chunks.push(chunk);
    }
    if (flaw === undefined && !incoming.complete) flaw = "the answer was cut off";
  } catch (error) {
    flaw = `the answer was cut off: ${messageOf(error)}`;
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
  // We ask for none; unpacking what was sent all the same would let a few bytes become gigabytes.
  if (encoding !== "identity") return { body: undefined, flaw: `the answer is encoded as ${encoding}` };
  const text = bytes.toString("utf8");
  if (!/^application\/([\w.-]+\+)?json\b/i.test(headers["content-type"] ?? "")) return { body: text };
  if (text === "") return { body: undefined };
  try {
    return { body: JSON.parse(text) };
  } catch {
    return { body: text, flaw: "the answer is not the JSON that it claims to be" };
  }
}

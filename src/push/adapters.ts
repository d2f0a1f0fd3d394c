import type { IncomingMessage, ServerResponse } from "node:http";
import type { Handler } from "./request.ts";

/**
 * The handler for `http.createServer`, Express and Fastify's raw objects.
 *
 * @example
 * createServer(toNode(handler)).listen(Number(process.env.PORT));
 */
export function toNode(handler: Handler): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  return async (incoming, outgoing) => {
    const gone = new AbortController();
    outgoing.once("close", () => {
      if (!outgoing.writableFinished) gone.abort();
    });
    const response = await handler(requestOf(incoming, gone.signal));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.end(response.body === null ? undefined : Buffer.from(await response.arrayBuffer()));
    // A body that was too large is left unread, and the connection must not carry it on.
    if (!incoming.complete) incoming.resume();
  };
}

function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (!name.startsWith(":")) for (const one of [value ?? []].flat()) headers.append(name, one);
  }
  const { method = "GET" } = incoming;
  const init: RequestInit = { method, headers, signal };
  // The address is not used: what matters is in the headers and the body.
  const url = "http://handler.invalid/";
  if (method === "GET" || method === "HEAD") return new Request(url, init);
  return new Request(url, {
    ...init,
    body: incoming as unknown as ReadableStream<Uint8Array>,
    duplex: "half",
  } as RequestInit);
}

/** The part of an event of API Gateway (payload 2.0) or of a function URL that is needed. */
export interface LambdaEvent {
  /** The headers of the request. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** Its body. */
  readonly body?: string | null;
  /** Whether the body is base64. */
  readonly isBase64Encoded?: boolean;
  /** The method of the request. */
  readonly requestContext?: { readonly http?: { readonly method?: string } };
}

/** What Lambda sends as the response. */
export interface LambdaResponse {
  /** The status code. */
  readonly statusCode: number;
  /** The headers. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body. */
  readonly body: string;
}

/**
 * The handler for AWS Lambda behind API Gateway or a function URL.
 *
 * @example
 * export const lambda = toLambda(handler);
 */
export function toLambda(handler: Handler): (event: LambdaEvent) => Promise<LambdaResponse> {
  return async ({ headers: given = {}, body, isBase64Encoded = false, requestContext }) => {
    const headers = new Headers();
    for (const [name, value] of Object.entries(given)) if (value !== undefined) headers.append(name, value);
    const method = requestContext?.http?.method ?? "POST";
    const bytes = Buffer.from(body ?? "", isBase64Encoded ? "base64" : "utf8");
    const hasBody = method !== "GET" && method !== "HEAD";
    const request = new Request("http://handler.invalid/", { method, headers, ...(hasBody && { body: bytes }) });
    const response = await handler(request);
    const text = await response.text();
    return { statusCode: response.status, headers: Object.fromEntries(response.headers), body: text };
  };
}

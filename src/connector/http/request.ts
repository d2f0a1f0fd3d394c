import { defined } from "../../base/defined.ts";
import { network } from "../../base/network.ts";
import { fenceMac, macHeader } from "../../model/fence-mac.ts";
import type { ConnectorContext } from "../../sdk/connector.ts";
import type { OutgoingRequest } from "./exchange.ts";

/** A request to the upstream, as the author of an effect describes it. */
export interface HttpRequest {
  /** Default POST. */
  readonly method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Relative to the connector's URL; absolute if it has none. */
  readonly url: string;
  /** Headers besides those of the connector. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Text and bytes are sent as they are, everything else as JSON. */
  readonly body?: unknown;
}

/** The key by which the upstream deduplicates. */
export const keyHeader = "idempotency-key";
/** The token that the upstream compares: within one key, it refuses a token lower than the highest it has seen. */
export const tokenHeader = "tape-fencing-token";

const methods: readonly string[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
/** Headers that only the connector sets: others could split one request into two, or claim another effect's key. */
const reserved: ReadonlySet<string> = new Set([
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
  "upgrade",
  "expect",
  "te",
  "trailer",
  "accept-encoding",
  keyHeader,
  tokenHeader,
  macHeader,
]);

/** Builds the request to send. If it throws, nothing was sent. */
export function buildRequest(
  request: HttpRequest,
  base: URL | undefined,
  shared: Readonly<Record<string, string>>,
  fx: ConnectorContext,
  secret?: string,
): OutgoingRequest {
  const { method = "POST" } = request;
  if (!methods.includes(method)) throw bad(`the method ${String(method)} is not one of ${methods.join(", ")}`);
  const url = urlOf(request.url, base);
  const given = { ...lowered(shared), ...lowered(request.headers ?? {}) };
  const { bytes, type } = bodyOf(request.body);
  if (bytes !== undefined && (method === "GET" || method === "HEAD")) throw bad(`${method} has no body`);
  const key = wireText(fx.key);
  const headers: Record<string, string> = {
    ...defined({ "content-type": type }),
    accept: "application/json, text/plain;q=0.9, */*;q=0.1",
    ...given,
    [keyHeader]: key,
    [tokenHeader]: String(fx.token),
    ...(secret === undefined ? {} : { [macHeader]: fenceMac(secret, keyHeader, key, fx.token) }),
    ...(bytes === undefined ? {} : { "content-length": String(bytes.byteLength) }),
    ...(bytes === undefined && method !== "GET" && method !== "HEAD" ? { "content-length": "0" } : {}),
  };
  return { method, url, headers, body: bytes };
}

/** Requests stay below the connector's URL, so that an effect's arguments cannot lead elsewhere. */
function urlOf(text: string, base: URL | undefined): URL {
  let url: URL;
  try {
    url = new URL(text, base);
  } catch {
    throw bad("the request's url is not valid");
  }
  assertPlain(url);
  if (base === undefined) return url;
  if (url.origin !== base.origin || !url.pathname.startsWith(base.pathname)) {
    throw bad(`the request leaves ${base.href}`);
  }
  if (climbs(url.pathname.slice(base.pathname.length))) {
    throw bad(`the request's path contains encoded dots and could leave ${base.href} at the upstream`);
  }
  return url;
}

/** Proxies may decode a path more than once. */
const maxDecodings = 3;

/** Whether a server that decodes the path first would find a step up in it. An encoded slash alone may be part of a key. */
function climbs(path: string): boolean {
  let text = path;
  for (let k = 0; k < maxDecodings; k++) {
    text = text.replace(/%(25|2e|2f|5c)/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    if (text.split(/[/\\]/).some((step) => step === ".." || step === ".")) return true;
  }
  return false;
}

/** Accepts http and https, without a password, which would appear in every message. */
export function assertPlain(url: URL): void {
  if (url.protocol !== "http:" && url.protocol !== "https:") throw bad(`${url.protocol} is neither http: nor https:`);
  if (url.username !== "" || url.password !== "") throw bad("the url contains a user name or a password; use a header");
}

/** Checks names and values, and refuses reserved headers. */
export function lowered(headers: Readonly<Record<string, string>>): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [key, value] of Object.entries(headers)) {
    const name = key.toLowerCase();
    if (reserved.has(name)) throw bad(`the header ${key} is set by the connector`);
    try {
      network.http.validateHeaderName(name);
      network.http.validateHeaderValue(name, value);
    } catch {
      throw bad(`the header ${JSON.stringify(key)} cannot be sent`); // without the value, which may be a secret
    }
    result[name] = value;
  }
  return result;
}

/** Encodes characters that run ids may contain and headers may not; different texts stay different. */
export function wireText(text: string): string {
  return text.toWellFormed().replace(/[^\x21-\x24\x26-\x7e]/gu, (letter) => encodeURIComponent(letter));
}

function bodyOf(body: unknown): { bytes?: Uint8Array; type?: string } {
  if (body === undefined) return {};
  if (typeof body === "string") return { bytes: Buffer.from(body), type: "text/plain; charset=utf-8" };
  if (body instanceof Uint8Array) return { bytes: body, type: "application/octet-stream" };
  const text = JSON.stringify(body);
  if (text === undefined) throw bad("the body cannot be written as JSON");
  return { bytes: Buffer.from(text), type: "application/json" };
}

/** The caller adds the code: TAPE_BAD_INPUT at the definition, a definite failure during an attempt. */
function bad(message: string): Error {
  return new Error(message);
}

import { network } from "../../base/network.ts";
import { fenceMac, macHeader } from "../../model/fence-mac.ts";
import type { ConnectorContext } from "../../sdk/connector.ts";
import type { OutgoingRequest } from "./exchange.ts";

/** What an author asks the other side for. */
export interface HttpRequest {
  /** POST unless told. */
  readonly method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Relative to the connector's own URL; absolute where it has none. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text and bytes are sent as they are, everything else as JSON. */
  readonly body?: unknown;
}

/** The key that the other side dedupes by. */
export const keyHeader = "idempotency-key";
/** The token that it compares: within one key, a lower one than it has seen is refused. */
export const tokenHeader = "tape-fencing-token";

const methods: readonly string[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
/** Whoever sets these could make one request look like two, or take another's key. */
const ours: ReadonlySet<string> = new Set([
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

/** The request as it will be sent; throws where it cannot be, and then nothing was. */
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
    ...(type === undefined ? {} : { "content-type": type }),
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

/** A connector with a URL of its own stays below it: what comes out of arguments cannot lead elsewhere. */
function urlOf(text: string, base: URL | undefined): URL {
  let url: URL;
  try {
    url = new URL(text, base);
  } catch {
    throw bad("the request's url cannot be read");
  }
  assertPlain(url);
  if (base === undefined) return url;
  if (url.origin !== base.origin || !url.pathname.startsWith(base.pathname)) {
    throw bad(`the request leaves ${base.href}`);
  }
  if (climbs(url.pathname.slice(base.pathname.length))) {
    throw bad(`the request's path holds encoded dots, and could leave ${base.href} at the upstream`);
  }
  return url;
}

/** Behind a proxy a path may be decoded more than once. */
const maxDecodings = 3;

/** Whether a server that decodes the path first would find a step up in it. An encoded slash alone is a key's own. */
function climbs(path: string): boolean {
  let text = path;
  for (let k = 0; k < maxDecodings; k++) {
    text = text.replace(/%(25|2e|2f|5c)/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    if (text.split(/[/\\]/).some((step) => step === ".." || step === ".")) return true;
  }
  return false;
}

/** http or https, without a password that would end up in every message. */
export function assertPlain(url: URL): void {
  if (url.protocol !== "http:" && url.protocol !== "https:") throw bad(`${url.protocol} is neither http: nor https:`);
  if (url.username !== "" || url.password !== "") throw bad("the url holds a name or a password; use a header");
}

/** Checks names and values; what is ours cannot be set. */
export function lowered(headers: Readonly<Record<string, string>>): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [key, value] of Object.entries(headers)) {
    const name = key.toLowerCase();
    if (ours.has(name)) throw bad(`the header ${key} is set by the connector`);
    try {
      network.http.validateHeaderName(name);
      network.http.validateHeaderValue(name, value);
    } catch {
      throw bad(`the header ${JSON.stringify(key)} cannot be sent`); // not its value: it may be a secret
    }
    result[name] = value;
  }
  return result;
}

/** Run ids may hold any letter, headers may not; different texts stay different. */
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

/** Told with its code by whoever asked: at the definition, or as an act that was not sent. */
function bad(message: string): Error {
  return new Error(message);
}

import type { HttpResponse } from "./exchange.ts";

/**
 * What a response proves about the effect:
 *
 *   success    it happened
 *   failure    this request did nothing, and the same request would do nothing again
 *   not_sent   this request did nothing, and may be retried
 *   unknown    it may have happened
 */
export type ResponseVerdict = "success" | "failure" | "not_sent" | "unknown";

/** Client errors whose standard says that the server refused before it did anything. */
const refusals: ReadonlySet<number> = new Set([
  400, 401, 402, 403, 404, 405, 406, 407, 410, 411, 412, 413, 414, 415, 416, 417, 418, 422, 423, 424, 426, 428, 431,
  451,
]);
/** Not processed and worth a retry: misdirected, too early, too many. */
const retryable: ReadonlySet<number> = new Set([421, 425, 429]);
/** The server does not support the method or the protocol, so it cannot have acted. */
const unsupported: ReadonlySet<number> = new Set([501, 505]);
/** The server did not process the request; the client must send it elsewhere. */
const moved: ReadonlySet<number> = new Set([307, 308]);

/**
 * The table of docs/connectors.md. Every status that it does not name is unknown: 202 (accepted, not done), other
 * redirects (many programs answer an accepted form with one), 408 and 5xx (a gateway before a server that may have
 * acted), 409 (often: this key exists, or is in progress), and non-standard numbers.
 */
export function verdictOn(method: string, status: number): ResponseVerdict {
  if (status >= 200 && status < 300) return status === 202 ? "unknown" : "success";
  if (retryable.has(status)) return "not_sent";
  if (refusals.has(status) || unsupported.has(status) || moved.has(status)) return "failure";
  // A request that only reads has done nothing, wherever it is redirected.
  if (status >= 300 && status < 400 && (method === "GET" || method === "HEAD")) return "failure";
  return "unknown";
}

/**
 * Refusals of the request's content, as opposed to its caller, address or form: a server may refuse the caller of a retry
 * whose first attempt it accepted.
 */
const considered: ReadonlySet<number> = new Set([400, 402, 410, 422, 423, 424, 451]);

/** Which attempts a failure settles: this one, or all attempts under the key (see `DefiniteFailure`). */
export const speaksFor = (status: number): "attempt" | "key" => (considered.has(status) ? "key" : "attempt");

/** Longer than any sensible pause. A server that requests more gets its retry after this. */
const maxRetryAfterMs = 3_600_000;

/** Retry-After, in seconds or as a date. */
export function retryAfterMs(response: HttpResponse, wallMs: number): number | undefined {
  const header = response.headers["retry-after"];
  if (header === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - wallMs;
  return Number.isFinite(ms) ? Math.min(Math.max(0, ms), maxRetryAfterMs) : undefined;
}

import type { HttpResponse } from "./exchange.ts";

/**
 * What an answer says about the act:
 *
 *   success    it happened
 *   failure    this request surely did nothing, and the same request would do nothing again
 *   not_sent   this request surely did nothing, and may be made again
 *   doubt      nobody knows
 */
export type ResponseVerdict = "success" | "failure" | "not_sent" | "doubt";

/** Client errors that a standard names and that say: refused before anything was done. */
const refusals: ReadonlySet<number> = new Set([
  400, 401, 402, 403, 404, 405, 406, 407, 410, 411, 412, 413, 414, 415, 416, 417, 418, 422, 423, 424, 426, 428, 431,
  451,
]);
/** Not processed and worth repeating: misdirected, too early, too many. */
const turnedAway: ReadonlySet<number> = new Set([421, 425, 429]);
/** The server does not know the method or the protocol: it cannot have acted. */
const unable: ReadonlySet<number> = new Set([501, 505]);
/** The request was not served here, and whoever sends it must send it elsewhere. */
const moved: ReadonlySet<number> = new Set([307, 308]);

/**
 * The table of docs/connectors.md. Everything that it does not name is doubt: 202 (taken, but not done), other redirects
 * (how many programs answer a form they have accepted), 408 and 5xx (a gateway between us and a server that may have
 * acted), 409 (often: this key is known, or is being worked on), numbers of no standard.
 */
export function verdictOn(method: string, status: number): ResponseVerdict {
  if (status >= 200 && status < 300) return status === 202 ? "doubt" : "success";
  if (turnedAway.has(status)) return "not_sent";
  if (refusals.has(status) || unable.has(status) || moved.has(status)) return "failure";
  // A request that only reads has done nothing, wherever it is sent on to.
  if (status >= 300 && status < 400 && (method === "GET" || method === "HEAD")) return "failure";
  return "doubt";
}

/**
 * Refusals by somebody who has looked at what was asked for, as against who asks, where and how: a door may be closed to a
 * repetition that it was open to the first time.
 */
const considered: ReadonlySet<number> = new Set([400, 402, 410, 422, 423, 424, 451]);

/** For which attempts a failure speaks (see `Definite`). */
export const speaksFor = (status: number): "attempt" | "key" => (considered.has(status) ? "key" : "attempt");

/** Longer than any sane pause; whoever asks for more is asked again after it. */
const maxRetryAfterMs = 3_600_000;

/** Retry-After, in seconds or as a date. */
export function retryAfterMs(answer: HttpResponse, wallMs: number): number | undefined {
  const said = answer.headers["retry-after"];
  if (said === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(said) ? Number(said) * 1_000 : Date.parse(said) - wallMs;
  return Number.isFinite(ms) ? Math.min(Math.max(0, ms), maxRetryAfterMs) : undefined;
}

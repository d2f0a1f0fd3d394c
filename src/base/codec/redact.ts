/**
 * What an error of an HTTP client carries beside its message: the request with its credentials. Journals keep errors in
 * clear and for long, so that part stays out.
 */

/** An error lists here own fields that are derived and need not be stored. */
export const unstored = Symbol.for("durable-tape.unstored");

/** Bytes of what hangs on one error: its fields help people, and a page-long answer does not. */
export const maxExtraChars = 64 * 1024;

const secretName =
  /^(proxy-?)?authorization$|^(set-?)?cookies?\d?$|pass(word|wd|phrase)|^pass$|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential|signature|^auth$|^jwt$|^bearer$/i;
/** Of a request, whole: names of headers are not a list that could ever be complete. */
const requestName = /^(headers|rawHeaders|rawTrailers|trailers|agent|httpAgent|httpsAgent|socket|_header|_headers)$/;
/** May be anything of the user's: a request only if it looks like one. */
const perhapsRequest = /^(config|request|req|options|init|\$response)$/;
const requestParts = ["headers", "auth", "agent", "socket", "method", "baseURL", "url", "uri", "href"];

export const redacted = "[redacted]";

/** What becomes of a field inside an error: kept, left out, or replaced by a word. */
export function fieldOfError(key: string, value: unknown): "keep" | "drop" | "redact" {
  if (requestName.test(key)) return "drop";
  if (perhapsRequest.test(key) && typeof value === "object" && value !== null) {
    return requestParts.some((part) => part in value) ? "drop" : "keep";
  }
  if (!secretName.test(key)) return "keep";
  // A number is a fencing token or a count of tokens of a model; text and objects may be the secret itself.
  if (typeof value === "string") return /^\d{0,19}$/.test(value) ? "keep" : "redact";
  return typeof value === "object" && value !== null ? "drop" : "keep";
}

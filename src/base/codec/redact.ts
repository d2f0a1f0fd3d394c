/**
 * An HTTP client's error often carries the request with its credentials. Journals keep errors in clear text for a long
 * time, so this part is left out.
 */

/** The property in which an error lists its derived fields, which need not be stored. */
export const unstored = Symbol.for("durable-tape.unstored");

/** Bytes of the extra fields of one error: fields help operators, a page-long response does not. */
export const maxExtraChars = 64 * 1024;

const secretName =
  /^(proxy-?)?authorization$|^(set-?)?cookies?\d?$|pass(word|wd|phrase)|^pass$|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential|signature|^auth$|^jwt$|^bearer$/i;
/** Fields of a request, redacted as a whole, because no list of secret header names is complete. */
const requestName = /^(headers|rawHeaders|rawTrailers|trailers|agent|httpAgent|httpsAgent|socket|_header|_headers)$/;
/** Fields that may hold any value of the user's: redacted only if the value is shaped like a request. */
const perhapsRequest = /^(config|request|req|options|init|\$response)$/;
const requestParts = ["headers", "auth", "agent", "socket", "method", "baseURL", "url", "uri", "href"];

export const redacted = "[redacted]";

/** What happens to a field inside an error: kept, left out, or replaced by a placeholder. */
export function fieldOfError(key: string, value: unknown): "keep" | "drop" | "redact" {
  if (requestName.test(key)) return "drop";
  if (perhapsRequest.test(key) && typeof value === "object" && value !== null) {
    return requestParts.some((part) => part in value) ? "drop" : "keep";
  }
  if (!secretName.test(key)) return "keep";
  // A number is a fencing token or a model's token count; text and objects may be the secret itself.
  if (typeof value === "string") return /^\d{0,19}$/.test(value) ? "keep" : "redact";
  return typeof value === "object" && value !== null ? "drop" : "keep";
}

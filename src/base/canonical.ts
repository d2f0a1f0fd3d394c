import { CodecError, isSealed, maxDepth, toJson } from "./codec.ts";
import { hash } from "./late-builtins.ts";

/**
 * RFC 8785 canonical JSON: no white space, keys sorted by UTF-16 code units, numbers as ECMAScript prints them.
 * `canonicalize({ b: 1.0, a: [] })` → `{"a":[],"b":1}`. The RFC demands that non-JSON values and lone surrogates are
 * refused; use {@link fingerprint} for any value that the codec accepts.
 */
export function canonicalize(value: unknown): string {
  return write(value, 0, strictText);
}

/**
 * SHA-256 (hex) of the canonical form of the encoded value. Equal values have equal fingerprints, in any key order. A
 * Date, a bigint or bytes differ from the text that encodes them. The order of a Map or a Set counts, because programs
 * can observe it. A sealed payload brings its own hash: its ciphertext differs each time.
 */
export function fingerprint(value: unknown): string {
  if (isSealed(value) && value.hash !== undefined) return value.hash;
  // Lone surrogates stay as escapes, because every value that can be stored must have a fingerprint.
  return hash("sha256", write(toJson(value), 0, JSON.stringify), "hex");
}

function strictText(text: string): string {
  if (!text.isWellFormed()) throw noForm("text with a lone surrogate");
  return JSON.stringify(text);
}

function write(value: unknown, depth: number, quote: (text: string) => string): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return quote(value);
  if (typeof value === "number") {
    if (Number.isFinite(value)) return String(value);
    throw noForm(String(value));
  }
  if (typeof value !== "object") throw noForm(`the type ${typeof value}`);
  // Not "≥": the codec's envelope adds one level to a value.
  if (depth > maxDepth) throw new CodecError("too_deep", "", `nested deeper than ${maxDepth} levels`);
  if (Array.isArray(value)) {
    let items = "";
    for (let k = 0; k < value.length; k++) items += `${k === 0 ? "" : ","}${write(value[k], depth + 1, quote)}`;
    return `[${items}]`;
  }
  const proto = Object.getPrototypeOf(value);
  if (proto !== null && proto !== Object.prototype) throw noForm("an instance of a class");
  const record = value as Record<string, unknown>;
  let members = "";
  // Without an argument, sort() compares UTF-16 code units.
  for (const key of Object.keys(record).sort()) {
    members += `${members === "" ? "" : ","}${quote(key)}:${write(record[key], depth + 1, quote)}`;
  }
  return `{${members}}`;
}

function noForm(what: string): CodecError {
  return new CodecError("not_encodable", "", `${what} has no canonical JSON form`);
}

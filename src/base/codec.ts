import { openEnvelope } from "./codec/decoder.ts";
import { copyPlain, isPlain, toEnvelope } from "./codec/encoder.ts";
import { CodecError, codecId, isEnvelope, maxDepth } from "./codec/format.ts";
import { describeThrown } from "./thrown.ts";

export { BlobRef, type BlobType, blobTypes, holdsBlobs, isBlobName, isBlobRef, markBlobHolder } from "./codec/blob.ts";
export { registerErrorClass } from "./codec/decoder.ts";
export { ErasedPayload, erasedWord, isErased } from "./codec/erased.ts";
export { CodecError, type CodecErrorCode, codecId, maxDepth } from "./codec/format.ts";
export { unstored } from "./codec/redact.ts";
export { isSealed, type SealedFields, SealedPayload, type SealedProblem, sealedFault } from "./codec/sealed.ts";

/*
 * Values as text: readable JSON, plus a type table for what JSON cannot express.
 *
 *   plain      {"to":"ada","tries":2}
 *   envelope   {"$codec":1,"data":{"at":"2026-01-02T03:04:05.006Z"},"types":{"/at":"date"}}
 *
 * `types` maps JSON pointers into `data` to one of: date bigint bytes error map set undefined number regexp url sealed
 * erased. A text is an envelope exactly when its top-level object has the key `$codec`. A user's object with that key is
 * wrapped too, so the two forms cannot be confused. The plain form is the usual case: one walk to verify, then
 * JSON.stringify.
 *
 * The text is well-formed Unicode without U+0000 (JSON.stringify escapes NUL and lone surrogates), because a UTF-8
 * text column can hold neither.
 *
 * A further type is `blob`: a reference to a large part that is stored beside the value.
 *
 * Not kept: identity (a shared reference becomes copies), array holes (they become undefined), named properties of
 * arrays, non-enumerable keys, RegExp.lastIndex, stacks, the class of an instance without methods.
 */

/** `encode({ at: new Date(0) })` → `{"$codec":1,"data":{"at":"1970-01-01T00:00:00.000Z"},"types":{"/at":"date"}}` */
export function encode(value: unknown): string {
  if (value === undefined) return undefinedText;
  try {
    const text = JSON.stringify(isPlain(value, 0) && !isEnvelope(value) ? value : toEnvelope(value));
    if (typeof text === "string") return text;
  } catch (error) {
    throw problemOf(error);
  }
  throw new CodecError("not_encodable", "", "the value changes each time it is read");
}

/** The JSON that {@link encode} writes, as a value, to embed in a larger JSON text. */
export function toJson(value: unknown): unknown {
  if (value === undefined) return JSON.parse(undefinedText);
  try {
    return isPlain(value, 0) && !isEnvelope(value) ? value : toEnvelope(value);
  } catch (error) {
    throw problemOf(error);
  }
}

/** Reverses {@link toJson} on the output of a JSON parser. */
export function fromJson(json: unknown): unknown {
  return isEnvelope(json) ? openEnvelope(json) : json;
}

/** `decode(encode(value))`, without the text where the value is plain. Throws what either of them would throw. */
export function throughCodec(value: unknown): unknown {
  let copy: unknown;
  try {
    copy = copyPlain(value);
  } catch (error) {
    throw problemOf(error);
  }
  return copy === undefined || isEnvelope(copy) ? decode(encode(value)) : copy;
}

/** Reverses {@link encode}. Unknown texts end in a CodecError, never in a half-restored value. */
export function decode(text: string): unknown {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // The parser's own message quotes the text, which may contain a secret.
    throw new CodecError("bad_text", "", `not valid JSON (${text.length} characters)`);
  }
  // A shorter text cannot open and close that many levels. The parser itself is not recursive; the envelope adds one.
  if (text.length > 2 * maxDepth && isDeeper(parsed, maxDepth + 1)) {
    throw new CodecError("too_deep", "", `nested deeper than ${maxDepth} levels`);
  }
  return isEnvelope(parsed) ? openEnvelope(parsed) : parsed;
}

/** Size of the text in a store, in bytes (UTF-8). */
export function sizeOf(text: string): number {
  return Buffer.byteLength(text, "utf8");
}

/** A user's getter or proxy may throw while it is read; such a value cannot be stored. */
function problemOf(error: unknown): CodecError {
  if (error instanceof CodecError) return error;
  const what = error instanceof RangeError ? "too large" : "it throws when it is read";
  return new CodecError("not_encodable", "", `${what}: ${describeThrown(error).slice(0, 200)}`);
}

// The result of every function that returns nothing, common enough to keep ready.
const undefinedText = `{"$codec":${codecId},"data":null,"types":{"":"undefined"}}`;

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((item) => isDeeper(item, levels - 1));
  for (const key in value) if (isDeeper((value as Record<string, unknown>)[key], levels - 1)) return true;
  return false;
}

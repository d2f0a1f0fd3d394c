import { decode, encode, fromJson, toJson } from "../base/codec.ts";

/*
 * A user's value on the wire is its JSON, or where a door would refuse that JSON its text:
 *
 *   {"to":"ada"}                                     as it is
 *   {"$codec":"text","data":"{\"__proto__\":1}"}     a key that no request may have, or nested too deep
 *
 * The two cannot be confused: a user's own object with the key `$codec` is in the codec's envelope.
 */

/** A server refuses bodies of more than 64 levels; around a value there are up to eight. */
const maxLevels = 48;
/** Keys that a server refuses wherever they stand. */
const refusedKeys = ['"__proto__"', '"constructor"'];

/** The text of a value, as {@link encode} wrote it, for a place inside a request. */
export function wireText(text: string): string {
  return mustBeText(text) ? JSON.stringify({ $codec: "text", data: text }) : text;
}

/** The same as a value. */
export function toWire(held: unknown): unknown {
  const json = toJson(held);
  if (typeof json !== "object" || json === null) return json;
  const text = JSON.stringify(json);
  return mustBeText(text) ? { $codec: "text", data: encode(held) } : json;
}

export function fromWire(given: unknown): unknown {
  return isText(given) ? decode(given.data) : fromJson(given);
}

export function isText(given: unknown): given is { readonly $codec: "text"; readonly data: string } {
  if (typeof given !== "object" || given === null || Array.isArray(given) || !Object.hasOwn(given, "$codec"))
    return false;
  const { $codec, data } = given as { $codec?: unknown; data?: unknown };
  return $codec === "text" && typeof data === "string";
}

export function mustBeText(text: string): boolean {
  return refusedKeys.some((key) => text.includes(key)) || isDeeper(text, maxLevels);
}

function isDeeper(text: string, levels: number): boolean {
  if (text.length <= 2 * levels) return false; // it cannot open and close that many
  let depth = 0;
  for (let k = 0; k < text.length; k++) {
    const letter = text.charCodeAt(k);
    if (letter === 0x22) {
      do k = text.indexOf('"', k + 1);
      while (isEscaped(text, k));
    } else if (letter === 0x7b || letter === 0x5b) {
      if (++depth > levels) return true;
    } else if (letter === 0x7d || letter === 0x5d) depth--;
  }
  return false;
}

/** Whether the quote at `at` is inside its string: an odd number of backslashes stands before it. */
function isEscaped(text: string, at: number): boolean {
  let before = at - 1;
  while (text.charCodeAt(before) === 0x5c) before--;
  return (at - before) % 2 === 0;
}

import { decode, encode, fromJson, toJson } from "../base/codec.ts";

/*
 * A user's value on the wire is its JSON, or its text if a server would reject that JSON:
 *
 *   {"to":"ada"}                                     unchanged
 *   {"$codec":"text","data":"{\"__proto__\":1}"}     a key that no request may contain, or nested too deep
 *
 * The two forms are unambiguous: the codec wraps a user's object that has the key `$codec` into an envelope.
 */

/** A server rejects bodies of more than 64 levels, and up to eight levels surround a value. */
const maxLevels = 48;
/** Keys that a server rejects at any level. */
const rejectedKeys = ['"__proto__"', '"constructor"'];

/** Encodes a value's text, as written by {@link encode}, for use inside a request. */
export function wireText(text: string): string {
  return mustBeText(text) ? JSON.stringify({ $codec: "text", data: text }) : text;
}

/** The same for a value. */
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
  return rejectedKeys.some((key) => text.includes(key)) || isDeeper(text, maxLevels);
}

function isDeeper(text: string, levels: number): boolean {
  if (text.length <= 2 * levels) return false; // too short to open and close that many levels
  let depth = 0;
  for (let k = 0; k < text.length; k++) {
    const char = text.charCodeAt(k);
    if (char === 0x22) {
      do k = text.indexOf('"', k + 1);
      while (isEscaped(text, k));
    } else if (char === 0x7b || char === 0x5b) {
      if (++depth > levels) return true;
    } else if (char === 0x7d || char === 0x5d) depth--;
  }
  return false;
}

/** Whether the quote at `at` is escaped: an odd number of backslashes precedes it. */
function isEscaped(text: string, at: number): boolean {
  let before = at - 1;
  while (text.charCodeAt(before) === 0x5c) before--;
  return (at - before) % 2 === 0;
}

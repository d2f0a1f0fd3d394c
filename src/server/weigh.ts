import type { Clock } from "../base/clock.ts";
import { TapeError } from "../model/errors.ts";

/**
 * What a body costs before anybody parses it. Parsing takes the whole process, and what it takes goes by how many values
 * a text has, not by its bytes: sixteen MiB of `[],[],` are eleven million arrays and seconds without an answer, one text
 * of the same length is nothing. So the values are counted first, a slice at a time, and too many are never parsed.
 */

/** A smaller body cannot hold enough to matter. */
const weighedFromBytes = 64 * 1024;
/** Looks between two turns of the event loop: a few milliseconds. */
const pollsPerTurn = 100_000;
/** A name that was not there before makes an object that is looked up, not one of a known shape. */
const nameWeight = 10;

const [quote, comma, colon, bracket, brace, backslash] = [0x22, 0x2c, 0x3a, 0x5b, 0x7b, 0x5c];

/** Refuses a JSON text with more than `most` values, where a new name counts as ten. */
export async function weigh(bytes: Uint8Array, most: number, clock: Clock): Promise<void> {
  if (bytes.length < weighedFromBytes) return;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const names = new Set<string>();
  let [weight, looks, inText] = [0, 0, false];
  let [from, to] = [0, 0]; // of the last text: before a colon it is a name
  for (let k = 0; k < bytes.length; k++) {
    if (inText) {
      k = bytes.indexOf(quote, k);
      if (k < 0) return; // it has no end, which the parser will say
      inText = isEscaped(bytes, k, from);
      to = k;
    } else {
      const letter = bytes[k]!;
      if (letter === quote) {
        inText = true;
        from = k + 1;
      } else if (letter === comma || letter === bracket || letter === brace) weight++;
      else if (letter === colon) {
        const before = names.size;
        // The name itself, not a short hash of it: a caller could choose names that have the same one.
        if (names.add(text.toString("latin1", from, to)).size > before) weight += nameWeight;
      }
    }
    if (weight > most) throw tooMany(most);
    if (++looks % pollsPerTurn === 0) await new Promise<void>((next) => clock.immediate(next));
  }
}

/** Whether the quote at `at` is inside its text: an odd number of backslashes stands before it. */
function isEscaped(bytes: Uint8Array, at: number, from: number): boolean {
  let before = at - 1;
  while (before >= from && bytes[before] === backslash) before--;
  return (at - before) % 2 === 0;
}

function tooMany(most: number): TapeError {
  const message = `a body holds at most ${most} values, where a new name counts as ${nameWeight}`;
  return new TapeError("TAPE_TOO_LARGE", message, { limit: "values", most });
}

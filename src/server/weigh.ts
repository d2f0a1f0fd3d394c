import type { Clock } from "../base/clock.ts";
import { TapeError } from "../model/errors.ts";

/**
 * Bounds the cost of parsing a body. Parsing blocks the whole process, and its time depends on the number of values,
 * not on the bytes: sixteen MiB of `[],[],` are eleven million arrays and seconds without a response; one string of the
 * same length is cheap. So the values are counted first, a slice at a time, and a body with too many is never parsed.
 */

/** A smaller body cannot hold enough values to matter. */
const weighedFromBytes = 64 * 1024;
/** Steps per turn of the event loop: a few milliseconds. */
const stepsPerTurn = 100_000;
/** A new name makes the engine use a dictionary instead of a known object shape. */
const nameWeight = 10;

const [quote, comma, colon, bracket, brace, backslash] = [0x22, 0x2c, 0x3a, 0x5b, 0x7b, 0x5c];

/** Rejects a JSON text with more than `maxValues` values, where a new name counts as ten. */
export async function weigh(bytes: Uint8Array, maxValues: number, clock: Clock): Promise<void> {
  if (bytes.length < weighedFromBytes) return;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const names = new Set<string>();
  let [weight, steps, inText] = [0, 0, false];
  let [from, to] = [0, 0]; // of the last string: before a colon it is a name
  for (let k = 0; k < bytes.length; k++) {
    if (inText) {
      k = bytes.indexOf(quote, k);
      if (k < 0) return; // it has no end, which the parser will report
      inText = isEscaped(bytes, k, from);
      to = k;
    } else {
      const char = bytes[k]!;
      if (char === quote) {
        inText = true;
        from = k + 1;
      } else if (char === comma || char === bracket || char === brace) weight++;
      else if (char === colon) {
        const before = names.size;
        // The name itself, not a short hash: a caller could choose names with the same hash.
        if (names.add(text.toString("latin1", from, to)).size > before) weight += nameWeight;
      }
    }
    if (weight > maxValues) throw tooMany(maxValues);
    if (++steps % stepsPerTurn === 0) await new Promise<void>((next) => clock.immediate(next));
  }
}

/** Whether the quote at `at` is escaped: an odd number of backslashes precedes it. */
function isEscaped(bytes: Uint8Array, at: number, from: number): boolean {
  let before = at - 1;
  while (before >= from && bytes[before] === backslash) before--;
  return (at - before) % 2 === 0;
}

function tooMany(max: number): TapeError {
  const message = `a body may have at most ${max} values, where a new name counts as ${nameWeight}`;
  return new TapeError("TAPE_TOO_LARGE", message, { limit: "values", max });
}

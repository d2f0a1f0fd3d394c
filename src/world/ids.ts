import type { Random } from "../base/random.ts";

/** Crockford's base 32, in which ULIDs are written: the order of the digits is that of the text. */
const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const timeDigits = 10;
const numberDigits = 10;

/** A ULID: 48 bits of Unix milliseconds, then 80 random bits. */
export const ulid = (ms: number, random: Random): string => inDigits(ms, timeDigits) + randomDigits(16, random);

/**
 * The id of an event: a ULID whose random part starts with the event's number in its run. So the ids of a run grow along
 * its log, whichever process writes, as long as `ms` never falls; and an id is enough to find its event.
 */
export const eventIdOf = (ms: number, number: number, random: Random): string =>
  `evnt_${inDigits(ms, timeDigits)}${inDigits(number, numberDigits)}${randomDigits(6, random)}`;

/** The number in an event's id; undefined: it is none of ours. */
export function eventNumberOf(id: string): number | undefined {
  const found = /^evnt_[0-9A-Z]{10}([0-9A-Z]{10})[0-9A-Z]{6}$/.exec(id)?.[1];
  if (found === undefined) return undefined;
  let number = 0;
  for (const digit of found) number = number * 32 + digits.indexOf(digit);
  return Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

function inDigits(value: number, length: number): string {
  let text = "";
  for (let rest = Math.floor(value); text.length < length; rest = Math.floor(rest / 32))
    text = digits[rest % 32] + text;
  return text;
}

function randomDigits(length: number, random: Random): string {
  return Array.from(random.bytes(length), (byte) => digits[byte % 32]).join("");
}

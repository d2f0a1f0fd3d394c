/**
 * Journal numbers rise, and Spanner splits tables by ranges of keys: a key that rises sends every insert to the last
 * range. So the tables hold each number with its 63 bits reversed (GoogleSQL: `bit_reverse(n, true)`), and a negative
 * one, the inbox, as the negative of that.
 */
export function storedOf(journal: number | bigint): bigint {
  const number = BigInt(journal);
  return number < 0n ? -reversed(-number) : reversed(number);
}

/** The number of a stored one. */
export const journalOf = storedOf;

const low = 0xffff_ffffn;

/** Of 64 bits, reversed in two halves; the last one is the sign, which is 0. */
function reversed(number: bigint): bigint {
  const high = BigInt(reversed32(Number(number & low)));
  return ((high << 32n) | BigInt(reversed32(Number(number >> 32n)))) >> 1n;
}

function reversed32(bits: number): number {
  let word = ((bits >>> 1) & 0x5555_5555) | ((bits & 0x5555_5555) << 1);
  word = ((word >>> 2) & 0x3333_3333) | ((word & 0x3333_3333) << 2);
  word = ((word >>> 4) & 0x0f0f_0f0f) | ((word & 0x0f0f_0f0f) << 4);
  word = ((word >>> 8) & 0x00ff_00ff) | ((word & 0x00ff_00ff) << 8);
  return ((word >>> 16) | (word << 16)) >>> 0;
}

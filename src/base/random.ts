import { createHash } from "node:crypto";
import { uuidv4, uuidv7 } from "./ids.ts";
import { getRandomValues } from "./late-builtins.ts";

/** Randomness as a parameter: the system's generator in production, a seeded one in simulation. */
export interface Random {
  /** Uniform in [0, 1), 53 bits. */
  float(): number;
  /** Uniform integer in [0, below), for 1 ≤ below ≤ 2^53 - 1; without modulo bias. */
  int(below: number): number;
  /** Uniform in [0, 2^63): fits a signed 64-bit column. */
  bits63(): bigint;
  /** This many random bytes. */
  bytes(n: number): Uint8Array;
  /** A UUID: version 7 when given the time in Unix milliseconds, else version 4. */
  uuid(ms?: number): string;
}

/**
 * The operating system's generator, fit for secrets.
 *
 * @example
 * const id = systemRandom.uuid();
 */
export const systemRandom: Random = fromWords(systemWords());

/**
 * A generator that produces the same sequence for the same seed, on every machine. Not for secrets. `1` and `"1"` are
 * the same seed, so that a seed printed by a failure can be passed back as text.
 */
export function seededRandom(seed: number | string): Random {
  return fromWords(sfc32(seed));
}

type Words = () => number;

function fromWords(next: Words): Random {
  const bits53 = (): number => (next() >>> 5) * 0x400_0000 + (next() >>> 6);
  const random: Random = {
    float: () => bits53() / 2 ** 53,
    int(below) {
      if (!Number.isSafeInteger(below) || below < 1) throw new RangeError(`not an upper bound: ${below}`);
      const [draw, range] = below <= 2 ** 32 ? [next, 2 ** 32] : [bits53, 2 ** 53];
      // The last, incomplete range of `below` values would favour low ones: draw again.
      const limit = range - (range % below);
      let value = draw();
      while (value >= limit) value = draw();
      return value % below;
    },
    bits63: () => (BigInt(next() >>> 1) << 32n) | BigInt(next()),
    bytes(n) {
      const bytes = new Uint8Array(n);
      for (let i = 0, word = 0; i < n; i++, word >>>= 8) {
        if (i % 4 === 0) word = next();
        bytes[i] = word & 0xff;
      }
      return bytes;
    },
    uuid: (ms) => (ms === undefined ? uuidv4(random) : uuidv7(ms, random)),
  };
  return random;
}

/** Words are drawn in bulk, because one system call costs more than a thousand words. */
function systemWords(): Words {
  const stock = new Uint32Array(1024);
  let used = stock.length;
  return () => {
    if (used === stock.length) {
      getRandomValues(stock);
      used = 0;
    }
    const word = stock[used]!;
    stock[used++] = 0; // a word that became a secret must not stay in memory
    return word;
  };
}

/** Chris Doty-Humphrey's sfc32 (PractRand): 128 bits of state, passes BigCrush, a few nanoseconds a word. */
function sfc32(seed: number | string): Words {
  // Hashing makes neighbouring seeds unrelated; its output fills the state evenly.
  const state = createHash("sha256").update(String(seed)).digest();
  let a = state.readInt32LE(0);
  let b = state.readInt32LE(4);
  let c = state.readInt32LE(8);
  let counter = state.readInt32LE(12);
  return () => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    c |= 0;
    return sum >>> 0;
  };
}

import type { Random } from "../src/base/random.ts";

export const pick = <T>(random: Random, from: readonly T[]): T => from[random.int(from.length)]!;
export const chance = (random: Random, share: number): boolean => random.float() < share;
export const times = <T>(count: number, make: (k: number) => T): T[] =>
  Array.from({ length: count }, (_, k) => make(k));

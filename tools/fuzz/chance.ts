import { type Random, seededRandom } from "../../src/base/random.ts";

/** Draws every decision of the fuzzer from one seed. */
export class Chance {
  readonly #random: Random;

  constructor(seed: string) {
    this.#random = seededRandom(seed);
  }

  int(below: number): number {
    return this.#random.int(below);
  }

  /** Both ends included. */
  between(low: number, high: number): number {
    return low + this.#random.int(high - low + 1);
  }

  maybe(probability: number): boolean {
    return this.#random.float() < probability;
  }

  oneOf<T>(list: readonly T[]): T {
    return list[this.#random.int(list.length)]!;
  }

  /** One of several, by weight. */
  weighted<T>(list: readonly (readonly [weight: number, item: T])[]): T {
    let left = this.#random.float() * list.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, item] of list) {
      left -= weight;
      if (left < 0) return item;
    }
    return list.at(-1)![1];
  }

  digits(length: number): string {
    return Array.from({ length }, () => this.#random.int(10)).join("");
  }

  bytes(length: number): Uint8Array {
    return this.#random.bytes(length);
  }
}

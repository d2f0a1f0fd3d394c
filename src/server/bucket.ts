import type { Clock } from "../base/clock.ts";

/** So many at once, and so many a second over time. */
export class Bucket {
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #clock: Clock;
  #left: number;
  #at: number;

  constructor(perSecond: number, burst: number, clock: Clock) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#clock = clock;
    this.#left = burst;
    this.#at = clock.mono();
  }

  /** How long until there is one again; 0: there is. */
  get waitMs(): number {
    this.#fill();
    return this.#left >= 1 ? 0 : Math.ceil(((1 - this.#left) / this.#perSecond) * 1_000);
  }

  /** Takes what is missing to the next ones: it may leave less than nothing. */
  take(count = 1): void {
    this.#fill();
    this.#left -= count;
  }

  /** Takes one if there is one. */
  tryTake(): boolean {
    if (this.waitMs > 0) return false;
    this.take();
    return true;
  }

  #fill(): void {
    const now = this.#clock.mono();
    this.#left = Math.min(this.#burst, this.#left + ((now - this.#at) / 1_000) * this.#perSecond);
    this.#at = now;
  }
}

/** Buckets by name, of those that came last. */
export class Buckets {
  readonly #most: number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(most: number) {
    this.#most = most;
  }

  of(key: string, make: () => Bucket): Bucket {
    const bucket = this.#buckets.get(key) ?? make();
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > this.#most) this.#buckets.delete(this.#buckets.keys().next().value!);
    return bucket;
  }
}

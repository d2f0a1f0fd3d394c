import type { Clock } from "../base/clock.ts";

/** A token bucket: `burst` at once, `perSecond` over time. */
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

  /** Time until the next one is available; 0: now. */
  get waitMs(): number {
    this.#fill();
    return this.#left >= 1 ? 0 : Math.ceil(((1 - this.#left) / this.#perSecond) * 1_000);
  }

  /** Takes `count` in any case; the balance may become negative, and later calls wait for it. */
  take(count = 1): void {
    this.#fill();
    this.#left -= count;
  }

  /** Takes one if it is available. */
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

/** Buckets by key; only the last used ones are kept. */
export class Buckets {
  readonly #max: number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(max: number) {
    this.#max = max;
  }

  of(key: string, make: () => Bucket): Bucket {
    const bucket = this.#buckets.get(key) ?? make();
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > this.#max) this.#buckets.delete(this.#buckets.keys().next().value!);
    return bucket;
  }
}

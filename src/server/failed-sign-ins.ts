import type { Clock } from "../base/clock.ts";
import { TapeError } from "../model/errors.ts";
import { Bucket, Buckets } from "./bucket.ts";

const maxAddresses = 10_000;
/** Reads of unknown ids per second, for all addresses together that sent too many bad credentials. */
const sparedReads = 200;

/**
 * Counts bad credentials by address. An address may send `maxPerMinute` of them, then it must wait. A good credential
 * from such an address is still found, because a proxy's address serves many callers: its id is read as long as all
 * such reads together are few.
 */
export class FailedSignIns {
  readonly #maxPerMinute: number;
  readonly #clock: Clock;
  readonly #left = new Buckets(maxAddresses);
  readonly #spared: Bucket;

  constructor(maxPerMinute: number, clock: Clock) {
    this.#maxPerMinute = maxPerMinute;
    this.#clock = clock;
    this.#spared = new Bucket(sparedReads, sparedReads, clock);
  }

  /** Called before an unknown id is read from the store. */
  assertMayRead(address: string): void {
    const { waitMs } = this.#of(address);
    if (waitMs > 0 && !this.#spared.tryTake()) throw tooMany(waitMs);
  }

  /** Counts a bad credential. */
  count(address: string): void {
    const left = this.#of(address);
    const { waitMs } = left;
    if (waitMs > 0) throw tooMany(waitMs);
    left.take();
  }

  #of(address: string): Bucket {
    return this.#left.of(address, () => new Bucket(this.#maxPerMinute / 60, this.#maxPerMinute, this.#clock));
  }
}

function tooMany(retryAfterMs: number): TapeError {
  const message = `too many bad credentials from this address; retry in ${retryAfterMs} ms`;
  return new TapeError("TAPE_RATE_LIMITED", message, { retryAfterMs });
}

import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { isTapeError } from "../model/errors.ts";
import { type ClockReading, readClocks } from "./belief.ts";

const retryBackoff = { baseMs: 50, capMs: 1_000 };
const maxTries = 4;

/**
 * One attempt to acquire a lease, identified by its nonce. Repeated after a lost response, it returns the term that was
 * granted; it neither blocks itself nor raises the token again.
 */
export class AcquireAttempt {
  readonly nonce: bigint;
  readonly #clock: Clock;
  readonly #random: Random;
  #sent: ClockReading;
  #uncertain = false;

  constructor(clock: Clock, random: Random) {
    this.nonce = random.bits63();
    this.#clock = clock;
    this.#random = random;
    this.#sent = readClocks(clock);
  }

  /** The earliest time at which a request that may have been granted was sent. */
  get sent(): ClockReading {
    return this.#sent;
  }

  /** A response was lost and no clear one has arrived since: the store may have granted the lease. */
  get uncertain(): boolean {
    return this.#uncertain;
  }

  /** Sends the request, and retries while responses get lost or the store is unreachable. */
  async send<T>(request: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      // While uncertain, trust counts from the first request whose response was lost, because that one may be granted.
      if (!this.#uncertain) this.#sent = readClocks(this.#clock);
      try {
        const response = await request();
        this.#uncertain = false;
        return response;
      } catch (error) {
        if (isTapeError(error, "TAPE_OUTCOME_UNKNOWN")) this.#uncertain = true;
        else if (!isTapeError(error, "TAPE_STORE_UNREACHABLE")) throw error;
        if (tries >= maxTries) throw error;
        await this.#clock.sleep(backoffMs(tries, retryBackoff, this.#random));
      }
    }
  }
}

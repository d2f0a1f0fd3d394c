import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { isTapeError } from "../model/errors.ts";
import { type ClockReading, readClocks } from "./belief.ts";

const retryBackoff = { baseMs: 50, capMs: 1_000 };
const maxTries = 4;

/**
 * One attempt to acquire. Its nonce names it: repeated after a lost answer it returns the term that was granted, it
 * neither blocks itself nor bumps the token again.
 */
export class AcquireAttempt {
  readonly nonce: bigint;
  readonly #clock: Clock;
  readonly #random: Random;
  #sent: ClockReading;
  #doubtful = false;

  constructor(clock: Clock, random: Random) {
    this.nonce = random.bits63();
    this.#clock = clock;
    this.#random = random;
    this.#sent = readClocks(clock);
  }

  /** When the request that may have been granted was sent, at the earliest. */
  get sent(): ClockReading {
    return this.#sent;
  }

  /** An answer was lost and no clear one has come since: the store may have granted it. */
  get uncertain(): boolean {
    return this.#doubtful;
  }

  /** Sends, and sends again while answers get lost or the store is away. */
  async send<T>(request: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      // In doubt the time counts from the first sending whose answer was lost: that one may be what was granted.
      if (!this.#doubtful) this.#sent = readClocks(this.#clock);
      try {
        const answer = await request();
        this.#doubtful = false;
        return answer;
      } catch (error) {
        if (isTapeError(error, "TAPE_OUTCOME_UNKNOWN")) this.#doubtful = true;
        else if (!isTapeError(error, "TAPE_STORE_UNREACHABLE")) throw error;
        if (tries >= maxTries) throw error;
        await this.#clock.sleep(backoffMs(tries, retryBackoff, this.#random));
      }
    }
  }
}

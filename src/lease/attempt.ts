import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { isTapeError } from "../model/errors.ts";
import { type Moment, momentOf } from "./belief.ts";

const again = { baseMs: 50, capMs: 1_000 };
const mostTries = 4;

/**
 * One attempt to acquire. Its nonce names it: repeated after a lost answer it returns the term that was granted, it
 * neither blocks itself nor bumps the token again.
 */
export class Attempt {
  readonly nonce: bigint;
  readonly #clock: Clock;
  readonly #random: Random;
  #sent: Moment;
  #doubtful = false;

  constructor(clock: Clock, random: Random) {
    this.nonce = random.bits63();
    this.#clock = clock;
    this.#random = random;
    this.#sent = momentOf(clock);
  }

  /** When the request that may have been granted was sent, at the earliest. */
  get sent(): Moment {
    return this.#sent;
  }

  /** An answer was lost and no clear one has come since: the store may have granted it. */
  get doubtful(): boolean {
    return this.#doubtful;
  }

  /** Sends, and sends again while answers get lost or the store is away. */
  async send<T>(request: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      // In doubt the time counts from the first sending whose answer was lost: that one may be what was granted.
      if (!this.#doubtful) this.#sent = momentOf(this.#clock);
      try {
        const answer = await request();
        this.#doubtful = false;
        return answer;
      } catch (error) {
        if (isTapeError(error, "TAPE_OUTCOME_UNKNOWN")) this.#doubtful = true;
        else if (!isTapeError(error, "TAPE_STORE_UNREACHABLE")) throw error;
        if (tries >= mostTries) throw error;
        await this.#clock.sleep(backoffMs(tries, again, this.#random));
      }
    }
  }
}

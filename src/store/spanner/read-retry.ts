import { backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import { TapeError } from "../../model/errors.ts";
import { boundMs } from "./connections.ts";
import { classifyError, faultOf } from "./errors.ts";

/** Repeats reads that got no response, but no longer than a transaction may last. Throws only TapeErrors. */
export class ReadRetry {
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  async run<T>(read: () => Promise<T>): Promise<T> {
    const until = this.#clock.mono() + boundMs;
    for (let tries = 1; ; tries++) {
      try {
        return await read();
      } catch (error) {
        if (error instanceof TapeError) throw error;
        const { kind } = classifyError(error);
        const passes = kind === "connection" || kind === "again";
        if (!passes || this.#clock.mono() >= until) throw faultOf(error);
      }
      await this.#clock.sleep(backoffMs(tries, { baseMs: 5, capMs: 500 }, this.#random));
    }
  }
}

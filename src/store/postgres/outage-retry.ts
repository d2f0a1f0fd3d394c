import { backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import { TapeError } from "../../model/errors.ts";
import { classifyError, type ErrorClass } from "./errors.ts";

export interface OutageRetryOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly boundMs: number;
}

/**
 * Retries over another connection when one breaks, but no longer than a transaction may last: a restart of the database
 * goes unnoticed, and no call hangs. Only for work that may be repeated.
 */
export class OutageRetry {
  readonly #options: OutageRetryOptions;

  constructor(options: OutageRetryOptions) {
    this.#options = options;
  }

  /** The deadline of work that starts now. */
  until(): number {
    return this.#options.clock.mono() + this.#options.boundMs;
  }

  over(until: number): boolean {
    return this.#options.clock.mono() >= until;
  }

  async pause(tries: number): Promise<void> {
    const { clock, random } = this.#options;
    await clock.sleep(backoffMs(tries, { baseMs: 5, capMs: 500 }, random));
  }

  /** Throws the last error unchanged. */
  async run<T>(work: () => Promise<T>, mayRetry: (fault: ErrorClass) => boolean = isOutage): Promise<T> {
    const until = this.until();
    for (let tries = 1; ; tries++) {
      try {
        return await work();
      } catch (error) {
        if (error instanceof TapeError || this.over(until) || !mayRetry(classifyError(error))) throw error;
      }
      await this.pause(tries);
    }
  }
}

const isOutage = (fault: ErrorClass): boolean => fault.kind === "connection";

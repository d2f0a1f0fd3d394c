import type { Clock } from "../base/clock.ts";

/** A step gives no wake hint, so that writers pay nothing for followers. While records come, a follower polls often. */
const firstPauseMs = 10;
const busyPauseMs = 250;
const busyForMs = 10_000;

/**
 * How long a follower of the feed pauses after an empty page: 10 ms, doubling to 250 ms while something has come in the
 * last 10 s, then to `maxMs`.
 */
export class FollowPace {
  readonly #clock: Clock;
  readonly #maxMs: number;
  #pauseMs: number;
  #cameAt: number | undefined;

  constructor(clock: Clock, maxMs: number) {
    this.#clock = clock;
    this.#maxMs = maxMs;
    this.#pauseMs = maxMs;
  }

  /** A page had records. */
  came(): void {
    this.#cameAt = this.#clock.mono();
    this.#pauseMs = Math.min(firstPauseMs, this.#maxMs);
  }

  /** The pause after an empty page. */
  next(): number {
    const isBusy = this.#cameAt !== undefined && this.#clock.mono() - this.#cameAt < busyForMs;
    const pauseMs = this.#pauseMs;
    const bound = isBusy ? Math.min(busyPauseMs, this.#maxMs) : this.#maxMs;
    this.#pauseMs = Math.min(bound, pauseMs * 2);
    return pauseMs;
  }
}

import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";

/** So long after the last sign of another writer a process takes itself to be alone. */
const memoryMs = 1_000;
/** Among others a transaction takes no further write after so long: its flush takes about as much. */
const workBoundMs = 6;
/** A process that works for less than this in a transaction writes little, and does not rest. */
const lightMs = 1;
/** A rest is at most so many times as long as the file was held, and at most so long. */
const mostRest = 8;
const mostRestMs = 250;
/** A file that is busy for so long is not shared but in trouble: ask less often. */
const troubleMs = 1_000;

/**
 * How a process shares the file with others. SQLite's lock has no queue: a process that releases it and asks again at
 * once gets it again. So a process that has met another writer keeps its transactions short, and rests after each for as
 * long as it held the file. It rests longer if it finds the file busy when it comes back: several heavy writers then
 * leave the file free often enough. A process that writes little never rests and asks often: it waits for the
 * transaction under way, and seldom for a second one.
 *
 *   alone ──file busy | another's commit seen──▶ among others ──a second without either──▶ alone
 */
export class Courtesy {
  readonly #clock: Clock;
  readonly #random: Random;
  #metAt = Number.NEGATIVE_INFINITY;
  #mixedAt = Number.NEGATIVE_INFINITY;
  /** false: no other writer was met within the last second. A process that is alone need not read the clock. */
  #shared = false;
  #light = true;
  /** Whether the file was busy when it was last asked for. */
  #waited = false;
  /** How many times as long as it held the file it rests. */
  #rest = 1;
  #restUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Another process has committed since our last transaction. */
  seen(): void {
    this.#metAt = this.#clock.mono();
    this.#shared = true;
  }

  /** Another tenant of this process has written: the next one must not wait for a long transaction either. */
  mixed(): void {
    this.#mixedAt = this.#clock.mono();
    this.#shared = true;
  }

  /** The file is busy, and has been for so long. Answers how long to wait before the next try. */
  busy(forMs: number): number {
    this.#metAt = this.#clock.mono();
    this.#shared = true;
    this.#waited = true;
    const pauseMs = forMs > troubleMs ? 20 : this.#light ? 2 : workBoundMs;
    return pauseMs * (0.5 + this.#random.float() / 2);
  }

  /** How long a transaction that begins now may take further writes. */
  workBoundMs(): number {
    if (!this.#shared) return Number.POSITIVE_INFINITY;
    const now = this.#clock.mono();
    this.#shared = this.#isAmongOthers(now) || now - this.#mixedAt < memoryMs;
    return this.#shared ? workBoundMs : Number.POSITIVE_INFINITY;
  }

  /** A transaction has let go of the file: how long it worked, which its flush is no part of, and how long it held it. */
  leave(workedMs: number, heldMs: number): void {
    const now = this.#clock.mono();
    const waited = this.#waited;
    this.#waited = false;
    this.#light = workedMs < lightMs;
    if (!this.#isAmongOthers(now)) this.#rest = 1;
    else if (!this.#light) this.#restFrom(now, heldMs, waited);
  }

  #restFrom(now: number, heldMs: number, waited: boolean): void {
    // Settles where three returns in five find it busy.
    this.#rest = Math.min(mostRest, Math.max(1, waited ? this.#rest * 1.25 : this.#rest / 1.5));
    this.#restUntil = now + Math.min(mostRestMs, heldMs * this.#rest);
  }

  /** How long the file is still to be left to others. */
  restMs(): number {
    if (!this.#shared) return 0;
    return Math.max(0, this.#restUntil - this.#clock.mono());
  }

  #isAmongOthers(now: number): boolean {
    return now - this.#metAt < memoryMs;
  }
}

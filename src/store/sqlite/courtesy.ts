import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";

/** After this long without a sign of another writer a process considers itself alone. */
const memoryMs = 1_000;
/** Among others, a transaction takes no further writes after this long: its flush takes about as long again. */
const workBoundMs = 6;
/** A process that works for less than this in a transaction writes little, and does not rest. */
const lightMs = 1;
/**
 * A rest lasts at most this many times as long as the file was held, and at most this many milliseconds. Rests that
 * no other process used become shorter, down to this part: enough for a process that tries every two milliseconds.
 */
const maxRestFactor = 8;
const minRestFactor = 1 / 16;
const maxRestMs = 250;
/** A file that is busy for this long is not shared but blocked: try less often. */
const blockedMs = 1_000;

/**
 * How a process shares the file with others. SQLite's lock has no queue: a process that releases it and requests it
 * again at once gets it again. So a process that has met another writer keeps its transactions short, and rests after
 * each for as long as it held the file. It rests longer if it finds the file busy afterwards, so that several heavy
 * writers leave the file free often enough. A process that writes little never rests and tries often: it waits for the
 * current transaction, and seldom for a second one.
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
  /** Whether the file was busy at the last try, and whether another process has committed since our last transaction. */
  #waited = false;
  #met = false;
  /** How many times as long as it held the file a process rests. */
  #rest = 1;
  #restUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Another process has committed since our last transaction. */
  seen(): void {
    this.#met = true;
    this.#metAt = this.#clock.mono();
    this.#shared = true;
  }

  /** Another tenant of this process has written: the next one must not wait for a long transaction either. */
  mixed(): void {
    this.#mixedAt = this.#clock.mono();
    this.#shared = true;
  }

  /** The file has been busy for `forMs`. Returns how long to wait before the next try. */
  busy(forMs: number): number {
    this.#metAt = this.#clock.mono();
    this.#shared = true;
    this.#waited = true;
    const pauseMs = forMs > blockedMs ? 20 : this.#light ? 2 : workBoundMs;
    return pauseMs * (0.5 + this.#random.float() / 2);
  }

  /** How long a transaction that starts now may take further writes. */
  workBoundMs(): number {
    if (!this.#shared) return Number.POSITIVE_INFINITY;
    const now = this.#clock.mono();
    this.#shared = this.#isAmongOthers(now) || now - this.#mixedAt < memoryMs;
    return this.#shared ? workBoundMs : Number.POSITIVE_INFINITY;
  }

  /** A transaction has released the file: how long it worked (without its flush), and how long it held the file. */
  leave(workedMs: number, heldMs: number): void {
    const now = this.#clock.mono();
    const waited = this.#waited;
    const met = waited || this.#met;
    this.#waited = false;
    this.#met = false;
    this.#light = workedMs < lightMs;
    if (!this.#isAmongOthers(now)) this.#rest = 1;
    else if (!this.#light) this.#restFrom(now, heldMs, { waited, met });
  }

  #restFrom(now: number, heldMs: number, { waited, met }: { readonly waited: boolean; readonly met: boolean }): void {
    // Converges where three tries in five find it busy, among processes that always write; below one for the others.
    const minRest = met ? 1 : minRestFactor;
    this.#rest = Math.min(maxRestFactor, Math.max(minRest, waited ? this.#rest * 1.25 : this.#rest / 1.5));
    this.#restUntil = now + Math.min(maxRestMs, heldMs * this.#rest);
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

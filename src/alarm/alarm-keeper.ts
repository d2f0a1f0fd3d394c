import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { errorFields, reasonOf } from "../base/reason.ts";
import { TapeError } from "../model/errors.ts";
import { type Alarms, boundOf, minAheadBounds, nextBucket } from "./alarms.ts";

export interface AlarmKeeperOptions {
  readonly alarms: Alarms;
  readonly tenant: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The store's, see `Store.transactionBoundMs`. */
  readonly transactionBoundMs: number;
}

/** An alarm that was set too late is followed by the next one. */
const maxTries = 3;
/** The next alarm is requested this long before it is needed: a service needs some time. */
const leadMs = 1_000;
const minPauseMs = 100;
/** Pause after an alarm that could not be set while a write is under way. */
const retryMs = 1_000;

/**
 * Keeps an alarm ahead of every write that can put something on the agenda.
 *
 *   unarmed → armed    the first write after a pause waits until an alarm is set; if that fails, it is refused
 *   armed              further writes do not wait
 *   armed, beating     while a write is under way, the next alarm is set before the last one is less than two bounds ahead
 *
 * So an alarm fires after the commit of every such write, whenever its process dies: what the process had sent is over
 * one bound later.
 */
export class AlarmKeeper {
  readonly boundMs: number;
  readonly #options: AlarmKeeperOptions;
  /** When the latest alarm fires, by both clocks of this process. The worse one counts. */
  #until = { wall: Number.NEGATIVE_INFINITY, mono: Number.NEGATIVE_INFINITY };
  #arming: Promise<void> | undefined;
  #underWay = 0;
  #beat: (() => void) | undefined;
  #failed = false;
  #lastWriteAt = Number.NEGATIVE_INFINITY;

  constructor(options: AlarmKeeperOptions) {
    this.#options = options;
    this.boundMs = boundOf(options.transactionBoundMs);
  }

  /** Whether a write of this process is under way or has just ended: then a hint is probably its own. */
  get isWriting(): boolean {
    return this.#underWay > 0 || this.#options.clock.mono() - this.#lastWriteAt < 1_000;
  }

  /**
   * Runs the write with an alarm ahead. TAPE_UNARMED: none could be set, and nothing was written. `openMs`: the write
   * may commit this much later than it responds.
   */
  async cover<T>(write: () => Promise<T>, openMs = 0): Promise<T> {
    if (!this.#isAhead(minAheadBounds)) await this.#arm();
    this.#underWay++;
    this.#startBeat();
    try {
      return await write();
    } finally {
      // The process may have stood still meanwhile: then the alarm may have fired before the commit.
      if (!this.#isAhead(1)) await this.#armLate();
      if (openMs === 0) this.#ended();
      else this.#options.clock.after(openMs, () => this.#ended());
    }
  }

  #aheadMs(): number {
    const { clock } = this.#options;
    return Math.min(this.#until.wall - clock.wall(), this.#until.mono - clock.mono());
  }

  #isAhead(bounds: number): boolean {
    return this.#aheadMs() >= bounds * this.boundMs;
  }

  /** Writers that come together wait for one alarm. */
  #arm(aheadMs = 0): Promise<void> {
    this.#arming ??= this.#set(aheadMs).finally(() => {
      this.#arming = undefined;
    });
    return this.#arming;
  }

  async #set(aheadMs: number): Promise<void> {
    const { tenant, clock } = this.#options;
    let cause: unknown;
    for (let tries = 0; tries < maxTries; tries++) {
      const { at, name } = nextBucket(clock.wall() + aheadMs, this.boundMs);
      const inMs = at - clock.wall();
      const mono = clock.mono() + inMs;
      try {
        await this.#bounded({ tenant, inMs, name });
      } catch (error) {
        cause = error;
        break;
      }
      this.#until = { wall: at, mono };
      if (this.#isAhead(minAheadBounds)) return; // otherwise the response has come late
    }
    const why = cause === undefined ? "the alarm service responds too late" : reasonOf(cause);
    throw new TapeError("TAPE_UNARMED", `no alarm could be set: ${why}`, { tenant }, cause);
  }

  /** A service that does not respond must not block writers for longer than a bound. */
  async #bounded(alarm: Parameters<Alarms["set"]>[0]): Promise<void> {
    const { alarms, clock } = this.#options;
    const done = new AbortController();
    const late = clock.sleep(this.boundMs, done.signal).then(() => {
      if (!done.signal.aborted) throw new Error(`the alarm service has not responded for ${this.boundMs} ms`);
    });
    try {
      await Promise.race([alarms.set(alarm), late]);
    } finally {
      done.abort();
    }
  }

  /** The write is committed or in doubt. It is reported only when an alarm is ahead, or setting one has failed. */
  async #armLate(): Promise<void> {
    try {
      await this.#arm();
    } catch (error) {
      this.#options.log("warn", "alarm.uncovered", { ...errorFields(error), next: "The next sweep finds the write." });
    }
  }

  #startBeat(): void {
    if (this.#beat !== undefined) return;
    const { clock, log } = this.#options;
    const enoughMs = this.#aheadMs() - minAheadBounds * this.boundMs - leadMs;
    const pauseMs = this.#failed ? retryMs : Math.max(minPauseMs, enoughMs);
    this.#beat = clock.after(pauseMs, () => {
      this.#beat = undefined;
      if (this.#underWay === 0) return;
      this.#arm(leadMs + 1).then(
        () => {
          this.#failed = false;
          if (this.#underWay > 0) this.#startBeat();
        },
        (error: unknown) => {
          this.#failed = true;
          log("warn", "alarm.beat_failed", { ...errorFields(error), writes: this.#underWay });
          if (this.#underWay > 0) this.#startBeat();
        },
      );
    });
  }

  #ended(): void {
    this.#lastWriteAt = this.#options.clock.mono();
    if (--this.#underWay > 0) return;
    this.#beat?.();
    this.#beat = undefined;
  }
}

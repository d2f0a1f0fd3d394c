import { isTapeError, type TapeError } from "../model/errors.ts";
import { needsResolving, placeOf, stuckRecord } from "./doubts.ts";
import type { Driver } from "./driver.ts";
import type { Inbox } from "./inbox.ts";

/** From when a timer falls due to when it has been fired, at the worst: then a run that was taken early rests again. */
const firingMs = 1_000;

/** Parks a drive when nothing runs, nothing is being written, and everything that is asked for waits for a note. */
export class Resting {
  readonly #drive: Driver;
  readonly #inbox: Inbox;
  readonly #onStuck: (why: TapeError) => void;
  #checking = false;
  /** Until then it does not rest: what it waits for is about to come. */
  #stayUntil = 0;
  #cancelStay: (() => void) | undefined;

  constructor(drive: Driver, inbox: Inbox, onStuck: (why: TapeError) => void) {
    this.#drive = drive;
    this.#inbox = inbox;
    this.#onStuck = onStuck;
  }

  /** It was taken so long before its timer. */
  stayFor(earlyMs: number): void {
    this.#stayUntil = this.#drive.options.clock.mono() + earlyMs + firingMs;
  }

  /** What it was kept for has come. */
  came(): void {
    this.#stayUntil = 0;
  }

  /** Something happened: see whether it can rest. */
  settle(): void {
    const drive = this.#drive;
    // Without a wait there is nothing to rest for; whoever adds one comes here again.
    if (this.#checking || drive.over || drive.waits.empty) return;
    this.#checking = true;
    const { clock } = drive.options;
    // Twice a turn: the code that was just set free may ask for its next operation.
    clock.soon(() =>
      clock.soon(() => {
        this.#checking = false;
        void this.#rest().catch((error: unknown) => drive.fail(error));
      }),
    );
  }

  stop(): void {
    this.#cancelStay?.();
  }

  async #rest(): Promise<void> {
    const drive = this.#drive;
    const { waits, journal } = drive;
    if (!drive.hears) return;
    if (drive.active > 0 || !journal.idle || this.#inbox.reading || waits.empty) return;
    if (this.#inbox.waiting) return this.#inbox.take();
    const { clock, lease } = drive.options;
    const stayMs = this.#stayUntil - clock.mono();
    if (stayMs > 0) {
      this.#cancelStay ??= clock.after(stayMs, () => {
        this.came();
        this.settle();
      });
      return;
    }
    // Nothing but effects that only a person can settle: the run says so, instead of waiting in silence.
    const { doubts } = waits;
    const stuck = doubts.length === 0 ? undefined : needsResolving(doubts[0]!, false);
    const rest = stuck === undefined ? [drive.endOfTerm(waits.about)] : [drive.endOfTerm(["a person"])];
    try {
      await journal.writeAlone(stuck === undefined ? rest : [stuckRecord(stuck, doubts.map(placeOf)), ...rest]);
    } catch (error) {
      if (!isTapeError(error, "TAPE_NOTES_WAIT")) throw error;
      return this.#inbox.take();
    }
    if (stuck !== undefined) this.#onStuck(stuck);
    drive.finish(stuck === undefined ? "parked" : "stuck");
    lease.lost("given back");
  }
}

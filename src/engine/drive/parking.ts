import { isTapeError, type TapeError } from "../../model/errors.ts";
import { effectRefOf } from "../../model/rows.ts";
import type { DriveHandle } from "../core/handle.ts";
import type { Inbox } from "./inbox.ts";
import { stuckRecord, unresolvedEffectError } from "./stuck-records.ts";

/** From when a timer falls due to when it has been fired, at the worst: then a run that was taken early rests again. */
const firingMarginMs = 1_000;

/** Parks a drive when nothing runs, nothing is being written, and everything that is asked for waits for a note. */
export class Parking {
  readonly #drive: DriveHandle;
  readonly #inbox: Inbox;
  readonly #onStuck: (why: TapeError) => void;
  #checking = false;
  /** Until then it does not rest: what it waits for is about to come. */
  #stayUntil = 0;
  #cancelStay: (() => void) | undefined;

  constructor(drive: DriveHandle, inbox: Inbox, onStuck: (why: TapeError) => void) {
    this.#drive = drive;
    this.#inbox = inbox;
    this.#onStuck = onStuck;
  }

  /** It was taken so long before its timer. */
  stayFor(earlyMs: number): void {
    this.#stayUntil = this.#drive.options.clock.mono() + earlyMs + firingMarginMs;
  }

  /** What it was kept for has come. */
  came(): void {
    this.#stayUntil = 0;
  }

  /** Something happened: see whether it can rest. */
  settle(): void {
    const drive = this.#drive;
    // Without a wait there is nothing to rest for; whoever adds one comes here again.
    if (this.#checking || drive.finished || drive.waits.empty) return;
    this.#checking = true;
    const { clock } = drive.options;
    // Twice a turn: the code that was just set free may ask for its next operation.
    clock.immediate(() =>
      clock.immediate(() => {
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
    if (!drive.acceptsNotes) return;
    if (drive.activeBodies > 0 || !journal.idle || this.#inbox.reading || waits.empty) return;
    if (this.#inbox.hasUnread) return this.#inbox.takeNotes();
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
    const { stuckEffects: doubts } = waits;
    const stuck = doubts.length === 0 ? undefined : unresolvedEffectError(doubts[0]!, false);
    const rest = stuck === undefined ? [drive.termEnded(waits.descriptions)] : [drive.termEnded(["a person"])];
    try {
      await journal.appendExclusive(
        stuck === undefined ? rest : [stuckRecord(stuck, doubts.map(effectRefOf)), ...rest],
      );
    } catch (error) {
      if (!isTapeError(error, "TAPE_NOTES_PENDING")) throw error;
      return this.#inbox.takeNotes();
    }
    if (stuck !== undefined) this.#onStuck(stuck);
    drive.finish(stuck === undefined ? "parked" : "stuck");
    lease.end("given back");
  }
}

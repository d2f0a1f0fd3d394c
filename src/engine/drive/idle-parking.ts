import { isTapeError, type TapeError } from "../../model/errors.ts";
import type { DriveHandle } from "../core/handle.ts";
import { stuckRecord, unresolvedEffectError } from "../core/stuck-records.ts";
import type { Inbox } from "./inbox.ts";

/** The longest delay between a due timer and its firing. After it a preloaded run may park again. */
const firingMarginMs = 1_000;

/** Parks a drive when no body runs, no write is in flight, and every open operation waits for a note. */
export class IdleParking {
  readonly #drive: DriveHandle;
  readonly #inbox: Inbox;
  readonly #onStuck: (error: TapeError) => void;
  #checking = false;
  /** Until then the drive does not park, because its timer is about to fire. */
  #stayUntil = 0;
  #cancelStay: (() => void) | undefined;

  constructor(drive: DriveHandle, inbox: Inbox, onStuck: (error: TapeError) => void) {
    this.#drive = drive;
    this.#inbox = inbox;
    this.#onStuck = onStuck;
  }

  /** The run was claimed this long before its timer. */
  stayFor(preloadMs: number): void {
    this.#stayUntil = this.#drive.options.clock.mono() + preloadMs + firingMarginMs;
  }

  /** The timer has fired, or the process is draining. */
  stopStaying(): void {
    this.#stayUntil = 0;
  }

  /** Checks soon whether the drive can park. */
  recheck(): void {
    const drive = this.#drive;
    // Without a wait there is nothing to park for; adding a wait calls this again.
    if (this.#checking || drive.finished || drive.waits.empty) return;
    this.#checking = true;
    const { clock } = drive.options;
    // Two turns of the event loop, so that code that has just resumed can request its next operation.
    clock.immediate(() =>
      clock.immediate(() => {
        this.#checking = false;
        void this.#park().catch((error: unknown) => drive.fail(error));
      }),
    );
  }

  stop(): void {
    this.#cancelStay?.();
  }

  async #park(): Promise<void> {
    const drive = this.#drive;
    const { waits, journal } = drive;
    if (!drive.acceptsNotes) return;
    if (drive.activeBodies > 0 || !journal.idle || this.#inbox.reading || waits.empty) return;
    if (this.#inbox.hasUnread) return this.#inbox.takeNotes();
    const { clock, lease } = drive.options;
    const stayMs = this.#stayUntil - clock.mono();
    if (stayMs > 0) {
      this.#cancelStay ??= clock.after(stayMs, () => {
        this.stopStaying();
        this.recheck();
      });
      return;
    }
    // Only effects that an operator must settle are left, or a step has given up: the run becomes STUCK instead of
    // waiting silently.
    const { stuckEffects, gaveUp, stuckOn } = waits;
    const stuck = gaveUp ?? (stuckEffects.length === 0 ? undefined : unresolvedEffectError(stuckEffects[0]!, false));
    const termEnded = drive.termEnded(stuck === undefined ? waits.descriptions : ["an operator"]);
    try {
      await journal.appendExclusive(stuck === undefined ? [termEnded] : [stuckRecord(stuck, stuckOn), termEnded]);
    } catch (error) {
      if (!isTapeError(error, "TAPE_NOTES_PENDING")) throw error;
      return this.#inbox.takeNotes();
    }
    if (stuck !== undefined) this.#onStuck(stuck);
    drive.finish(stuck === undefined ? "parked" : "stuck");
    lease.end("released");
  }
}

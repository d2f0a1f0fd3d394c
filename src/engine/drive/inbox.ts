import { backoffMs } from "../../base/backoff.ts";
import type { NewRecord } from "../../model/records.ts";
import type { DriveHandle } from "../core/handle.ts";
import { settleMatch } from "../core/report.ts";
import type { Note } from "../replay/history.ts";
import { assertReadableRecord } from "./readable.ts";

/** Retries for notes that are counted but missing, after a restore or through a lagging replica: up to every 30 s. */
const missingBackoff = { baseMs: 50, capMs: 30_000 };

/** The run's inbox, as its driver reads it. Other processes leave notes there; only this class takes them. */
export class Inbox {
  readonly #drive: DriveHandle;
  /** The highest number of notes that the store has reported. */
  #count: number;
  #reading = false;
  /** A note may have arrived since the last read, although the count does not show it. */
  #notified: boolean;
  /** Reads that returned no note although the count says that there is one. */
  #emptyReads = 0;
  #endPause = (): void => {};

  constructor(drive: DriveHandle, count: number, notified: boolean) {
    this.#drive = drive;
    this.#count = count;
    this.#notified = notified;
  }

  /** There are, or may be, notes that have not been taken. */
  get hasUnread(): boolean {
    return this.#notified || this.#count > this.#drive.waits.notesTaken;
  }

  get reading(): boolean {
    return this.#reading;
  }

  /** The store has reported how many notes there are. */
  setKnownCount(count: number): void {
    if (count > this.#count) this.#count = count;
    if (this.hasUnread) void this.takeNotes();
  }

  /** A note may have arrived. Remembered until the next read, because replay takes no notes. */
  notify(): void {
    this.#notified = true;
    void this.takeNotes();
  }

  /** Reads pending notes, and records that they were taken and which waits they settle. */
  async takeNotes(): Promise<void> {
    const drive = this.#drive;
    if (!drive.acceptsNotes) return;
    this.#notified = true; // a read in flight may miss the note that was just announced
    if (this.#reading) {
      this.#endPause();
      return;
    }
    this.#reading = true;
    try {
      while (this.#notified && drive.acceptsNotes) {
        this.#notified = false;
        const notes = await this.#unread();
        for (const note of notes) assertReadableRecord(drive.options.runId, note);
        this.#took(notes);
        if (notes.length === 0 && this.hasUnread && !this.#notified && drive.acceptsNotes) await this.#pause();
      }
    } catch (error) {
      drive.fail(error);
    } finally {
      this.#reading = false;
      drive.parkIfIdle();
    }
  }

  /** Takes pending notes while the run ends. The end requires it; nothing waits for them any more. */
  async takeLate(): Promise<void> {
    const { waits, journal } = this.#drive;
    const before = waits.notesTaken;
    waits.addNotes(await this.#unread());
    if (waits.notesTaken === before) return this.#pause(); // the caller retries
    await journal.append([{ kind: "notes.taken", data: { through: waits.notesTaken } }]);
  }

  #took(notes: readonly Note[]): void {
    const drive = this.#drive;
    if (!drive.acceptsNotes || notes.length === 0) return;
    // From here on nothing starts: it would be recorded after the cancellation.
    if (notes.some((note) => note.kind === "cancel.requested")) drive.cancelRequested = true;
    drive.waits.addNotes(notes);
    const taken: NewRecord = { kind: "notes.taken", data: { through: drive.waits.notesTaken } };
    const refused = (error: unknown): void => drive.fail(error);
    if (drive.cancelRequested) {
      const deliver = (): void => {
        if (!drive.cancelled) drive.cancel();
        drive.matchWaits();
      };
      drive.journal.enqueue([taken], deliver, refused);
      return;
    }
    // In one append with the first wait that they settle: the code receives that result alone, as in replay.
    const [first, ...others] = drive.waits.matches();
    if (first === undefined) drive.journal.enqueue([taken], () => drive.matchWaits(), refused);
    else drive.journal.enqueue([taken, first.record], () => settleMatch(drive, first), refused);
    for (const match of others) drive.journal.enqueue([match.record], () => settleMatch(drive, match), refused);
    drive.parkIfIdle();
  }

  /** The store counts notes that it does not return: pauses before the next read, so that the drive does not spin. */
  async #pause(): Promise<void> {
    const { clock, random, log, runId } = this.#drive.options;
    if (++this.#emptyReads === 1) {
      log("warn", "run.notes_missing", { run: runId, notesTaken: this.#drive.waits.notesTaken, counted: this.#count });
    }
    const pause = new AbortController();
    this.#endPause = () => pause.abort();
    const signal = AbortSignal.any([pause.signal, this.#drive.abortSignal]);
    await clock.sleep(backoffMs(this.#emptyReads, missingBackoff, random), signal);
  }

  #unread(): Promise<Note[]> {
    const { options, waits } = this.#drive;
    const { store, lease, tenant } = options;
    return store.read.journal(tenant, { journal: lease.term.journal }, { from: waits.notesTaken + 1, inbox: true });
  }
}

import { backoffMs } from "../../base/backoff.ts";
import type { NewRecord } from "../../model/records.ts";
import type { DriveHandle } from "../core/handle.ts";
import { settleMatch } from "../core/report.ts";
import type { Note } from "../replay/history.ts";

/** A store that was restored, or read through something that lags: soon at first, then every half a minute. */
const missingBackoff = { baseMs: 50, capMs: 30_000 };

/** The run's inbox, as its driver reads it: whoever has something to tell leaves a note there, and only this takes it. */
export class Inbox {
  readonly #drive: DriveHandle;
  /** Notes that there are, as far as we were told. */
  #told: number;
  #reading = false;
  /** A note may have come since it was last read, though nobody has counted it. */
  #poked: boolean;
  /** Looks that brought nothing although there should have been something. */
  #fruitless = 0;
  #endPause = (): void => {};

  constructor(drive: DriveHandle, told: number, poked: boolean) {
    this.#drive = drive;
    this.#told = told;
    this.#poked = poked;
  }

  /** There are more notes than were taken, or there may be. */
  get hasUnread(): boolean {
    return this.#poked || this.#told > this.#drive.waits.notesTaken;
  }

  get reading(): boolean {
    return this.#reading;
  }

  /** The store said how many there are. */
  setKnownCount(count: number): void {
    if (count > this.#told) this.#told = count;
    if (this.hasUnread) void this.takeNotes();
  }

  /** A note may have come. Kept until it has been looked for: during replay nobody hears. */
  poke(): void {
    this.#poked = true;
    void this.takeNotes();
  }

  /** Reads what waits, and writes into the journal that it was taken and what it settles. */
  async takeNotes(): Promise<void> {
    const drive = this.#drive;
    if (!drive.acceptsNotes) return;
    this.#poked = true; // what was read until now may be older than the note we are told of
    if (this.#reading) {
      this.#endPause();
      return;
    }
    this.#reading = true;
    try {
      while (this.#poked && drive.acceptsNotes) {
        this.#poked = false;
        const notes = await this.#unread();
        this.#took(notes);
        if (notes.length === 0 && this.hasUnread && !this.#poked && drive.acceptsNotes) await this.#pause();
      }
    } catch (error) {
      drive.fail(error);
    } finally {
      this.#reading = false;
      drive.parkIfIdle();
    }
  }

  /** While the run ends: notes are taken so that it may, but nothing waits for them any more. */
  async takeLate(): Promise<void> {
    const { waits, journal } = this.#drive;
    const before = waits.notesTaken;
    waits.addNotes(await this.#unread());
    if (waits.notesTaken === before) return this.#pause(); // its caller tries the same again
    await journal.append([{ kind: "notes.taken", data: { through: waits.notesTaken } }]);
  }

  #took(notes: readonly Note[]): void {
    const drive = this.#drive;
    if (!drive.acceptsNotes || notes.length === 0) return;
    // From here on nothing begins: it would be recorded behind the cancellation.
    if (notes.some((note) => note.kind === "cancel.requested")) drive.cancelRequested = true;
    drive.waits.addNotes(notes);
    const taken: NewRecord = { kind: "notes.taken", data: { through: drive.waits.notesTaken } };
    const refused = (error: unknown): void => drive.fail(error);
    if (drive.cancelRequested) {
      const told = (): void => {
        if (!drive.cancelled) drive.cancel();
        drive.matchWaits();
      };
      drive.journal.enqueue([taken], told, refused);
      return;
    }
    // Together with the first wait that they settle: the code hears of that one alone, as it will in replay.
    const [first, ...others] = drive.waits.matches();
    if (first === undefined) drive.journal.enqueue([taken], () => drive.matchWaits(), refused);
    else drive.journal.enqueue([taken, first.record], () => settleMatch(drive, first), refused);
    for (const match of others) drive.journal.enqueue([match.record], () => settleMatch(drive, match), refused);
    drive.parkIfIdle();
  }

  /** The store counts notes that it does not hand out. Whoever waits for them must not ask without end. */
  async #pause(): Promise<void> {
    const { clock, random, log, runId } = this.#drive.options;
    if (++this.#fruitless === 1) {
      log("warn", "run.notes_missing", { run: runId, taken: this.#drive.waits.notesTaken, counted: this.#told });
    }
    const pause = new AbortController();
    this.#endPause = () => pause.abort();
    const signal = AbortSignal.any([pause.signal, this.#drive.abortSignal]);
    await clock.sleep(backoffMs(this.#fruitless, missingBackoff, random), signal);
  }

  #unread(): Promise<Note[]> {
    const { options, waits } = this.#drive;
    const { store, lease, tenant } = options;
    return store.read.journal(tenant, { journal: lease.term.journal }, { from: waits.notesTaken + 1, inbox: true });
  }
}

import type { NewRecord } from "../model/records.ts";
import type { Driver } from "./driver.ts";
import type { Note } from "./history.ts";

/** The run's inbox, as its driver reads it: whoever has something to tell leaves a note there, and only this takes it. */
export class Inbox {
  readonly #drive: Driver;
  /** Notes that there are, as far as we were told. */
  #told: number;
  #reading = false;
  /** A note may have come since it was last read, though nobody has counted it. */
  #poked: boolean;

  constructor(drive: Driver, told: number, poked: boolean) {
    this.#drive = drive;
    this.#told = told;
    this.#poked = poked;
  }

  /** There are more notes than were taken, or there may be. */
  get waiting(): boolean {
    return this.#poked || this.#told > this.#drive.waits.seen;
  }

  get reading(): boolean {
    return this.#reading;
  }

  /** The store said how many there are. */
  notice(count: number): void {
    if (count > this.#told) this.#told = count;
    if (this.waiting) void this.take();
  }

  /** A note may have come. Kept until it has been looked for: during replay nobody hears. */
  poke(): void {
    this.#poked = true;
    void this.take();
  }

  /** Reads what waits, and writes into the journal that it was taken and what it settles. */
  async take(): Promise<void> {
    const drive = this.#drive;
    if (!drive.hears) return;
    this.#poked = true; // what was read until now may be older than the note we are told of
    if (this.#reading) return;
    this.#reading = true;
    try {
      while (this.#poked && drive.hears) {
        this.#poked = false;
        this.#took(await this.#unread());
      }
    } catch (error) {
      drive.fail(error);
    } finally {
      this.#reading = false;
      drive.settle();
    }
  }

  /** While the run ends: notes are taken so that it may, but nothing waits for them any more. */
  async takeLate(): Promise<void> {
    const { waits, journal } = this.#drive;
    waits.arrive(await this.#unread());
    await journal.writeNow([{ kind: "notes.taken", data: { through: waits.seen } }]);
  }

  #took(notes: readonly Note[]): void {
    const drive = this.#drive;
    if (!drive.hears || notes.length === 0) return;
    // From here on nothing begins: it would be recorded behind the cancellation.
    if (notes.some((note) => note.kind === "cancel.asked")) drive.cancelling = true;
    drive.waits.arrive(notes);
    const taken: NewRecord = { kind: "notes.taken", data: { through: drive.waits.seen } };
    const refused = (error: unknown): void => drive.fail(error);
    if (drive.cancelling) {
      const told = (): void => {
        if (!drive.cancelled) drive.cancel();
        drive.matchWaits();
      };
      drive.journal.write([taken], told, refused);
      return;
    }
    // Together with the first wait that they settle: the code hears of that one alone, as it will in replay.
    const [first, ...others] = drive.waits.matches();
    if (first === undefined) drive.journal.write([taken], () => drive.matchWaits(), refused);
    else drive.journal.write([taken, first.record], first.wait.written, refused);
    for (const { record, wait } of others) drive.journal.write([record], wait.written, refused);
    drive.settle();
  }

  #unread(): Promise<Note[]> {
    const { options, waits } = this.#drive;
    const { store, lease, tenant } = options;
    return store.read.journal(tenant, { journal: lease.term.journal }, { from: waits.seen + 1, inbox: true });
  }
}

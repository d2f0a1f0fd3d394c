import type { JournalRecord, NewRecord } from "../../model/records.ts";

type Amounts = Readonly<Record<string, number>>;

/**
 * Open reservations of the run, by position. No code is left to charge them when the run's outcome is decided, so they
 * are closed in the same transaction. The cost of the call is unknown, so the whole reservation counts as spent;
 * otherwise the other runs of the tree could spend it again.
 */
export class Reservations {
  readonly #open = new Map<number, Amounts>();

  constructor(recorded: ReadonlyMap<number, readonly JournalRecord[]>) {
    for (const records of recorded.values()) for (const record of records) this.apply(record);
  }

  apply(record: NewRecord): void {
    if (record.kind === "budget.reserved") this.#open.set(record.data.pos, record.data.amounts);
    if (record.kind === "budget.charged") this.#open.delete(record.data.reservation ?? record.data.pos);
  }

  closingRecords(rootRun: number): NewRecord[] {
    return [...this.#open].map(([pos, held]) => {
      const [spent, reserved] = [{ ...held }, { ...held }];
      return { kind: "budget.charged", data: { pos, rootRun, spent, reserved } };
    });
  }
}

import type { JournalRecord, NewRecord } from "../../model/records.ts";

type Amounts = Readonly<Record<string, number>>;

/**
 * Reservations that the run holds, by their position. When its outcome is decided nobody is left to charge them: they are
 * closed in the same transaction. Nobody knows what the call has cost, so all that was reserved for it counts as spent:
 * the other runs of the tree must not buy with it again.
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

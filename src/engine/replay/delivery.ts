import type { JournalRecord } from "../../model/records.ts";

/** A record with the result of an operation, or with the cancellation of the run, in journal order. */
export interface Delivery {
  readonly seq: number;
  readonly at: number;
  /** undefined: the cancellation. */
  readonly pos: number | undefined;
  readonly record: JournalRecord;
}

/** What a drive reads of a run: everything since the run last continued as new. */
export interface Generation {
  readonly number: number;
  /** The first record; 1: that of the run. */
  readonly begins: number;
  /** The lane of the code itself. */
  readonly lane: number;
  /** Notes that earlier generations have taken. */
  readonly notesTaken: number;
}

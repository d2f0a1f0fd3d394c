import type { JournalRecord, RecordData } from "../../model/records.ts";
import type { Delivery } from "./delivery.ts";

/** The positions that are discarded with a retried failure, in each lane. */
export function discardedRanges({
  from,
  to,
  lanes = [],
}: RecordData<"run.retried">): readonly { from: number; to: number }[] {
  return from === undefined || to === undefined ? lanes : [{ from, to }, ...lanes];
}

/**
 * The failure that ended the run is retried: its result is no longer delivered, nor that of concurrent operations that
 * failed after it (nothing was requested in between). A failure that the code handled stays.
 */
export function withoutFailure(deliveries: Delivery[], pos: number | undefined): Delivery[] {
  const from = deliveries.findLast((delivery) => delivery.pos === pos && failed(delivery.record))?.seq;
  if (pos === undefined || from === undefined) return deliveries;
  return deliveries.filter(({ seq, record }) => seq < from || !failed(record));
}

function failed(record: JournalRecord): boolean {
  if (record.kind === "effect.received") return record.data.status === "REFUSED";
  return (record.kind === "step.done" || record.kind === "decision.made") && record.data.error !== undefined;
}

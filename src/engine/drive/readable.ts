import { readable, sealedError, sealedIn } from "../../model/payloads.ts";
import type { JournalRecord, RecordData } from "../../model/records.ts";

/** Code must never receive a payload that this process could not decode in place of its value. */
export function assertReadable(
  run: string,
  created: RecordData<"run.created">,
  records: readonly JournalRecord[],
): void {
  readable(created.input, { run });
  for (const record of records) {
    // A debounced start may have replaced the first input.
    if (record.kind !== "run.created") assertReadableRecord(run, record);
  }
}

export function assertReadableRecord(run: string, record: JournalRecord): void {
  const sealed = sealedIn(record);
  if (sealed !== undefined) throw sealedError(sealed, { run, seq: record.seq, kind: record.kind });
}

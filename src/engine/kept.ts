import type { JournalRecord } from "../model/records.ts";

/** The records with those that a fork kept of another run in their place: replay hands them out like its own. */
export function expandKeptRecords(records: readonly JournalRecord[]): JournalRecord[] {
  if (!records.some(({ kind }) => kind === "fork.kept")) return [...records];
  return records.flatMap((record) => {
    if (record.kind !== "fork.kept") return [record];
    const { journal, seq, token, at } = record;
    return record.data.records.map((kept) => ({ ...kept, journal, seq, token, at }) as JournalRecord);
  });
}

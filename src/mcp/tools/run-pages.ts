import type { Api, WireOf } from "../api.ts";
import { numberAt, pageOf, placeOf } from "../paging.ts";

/** Records of one request for a page of a journal. Most records are short. */
const pageRecords = 200;

export interface JournalRequest {
  readonly run: string;
  readonly inbox: boolean;
  readonly cursor: string | undefined;
  readonly others?: object;
}

export type WireRecord = WireOf<"runs.journal">["records"][number];

/** A page of a journal, whole records as long as they fit. The cursor is the seq of the next one. */
export async function journalPage(api: Api, { run, inbox, cursor, others = {} }: JournalRequest): Promise<object> {
  const place = placeOf(cursor);
  const from = numberAt(place, 1);
  const { records, more } = await readRecords(api, { run, inbox, from });
  const rows = records.map(({ journal: _journal, ...row }) => row);
  const start = { ...place, after: String(from) };
  return pageOf(start, {
    ...{ field: "records", rows, more, others },
    behind: ({ seq }) => String(seq + 1),
  });
}

export async function readRecords(
  api: Api,
  { run, inbox, from }: { readonly run: string; readonly inbox: boolean; readonly from: number },
): Promise<{ readonly records: readonly WireRecord[]; readonly more: boolean }> {
  const query = { from, limit: pageRecords, ...(inbox && { inbox }) };
  const { records, more = false } = await api.call("runs.journal", { params: { id: run }, query });
  return { records, more };
}

/** The names of these journals: rows of lists have numbers. */
export async function namesOf(api: Api, journals: readonly number[]): Promise<ReadonlyMap<number, string>> {
  const of = [...new Set(journals)].map(String);
  if (of.length === 0) return new Map();
  const found = await api.call("journals.names", { query: { of } });
  return new Map(found.journals.map(({ journal, name }) => [journal, name]));
}

import { TapeError } from "../model/errors.ts";
import type { LeaseView } from "../model/lease.ts";
import type { FeedRecord, Page, ReadOps } from "./contract/store.ts";

interface NumberedRow {
  readonly journal: number;
  readonly seq: number;
}

/** Reads a journal page by page from `first` to its end. The `seq` of a journal is dense; a gap is an error. */
export async function readAll<R extends NumberedRow>(
  page: (from: number) => Promise<Page<R>>,
  first = 1,
): Promise<R[]> {
  const all: R[] = [];
  for (;;) {
    const from = first + all.length;
    const some = await page(from);
    const gap = some.findIndex(({ seq }, k) => seq !== from + k);
    if (gap >= 0) throw damaged(from + gap, some[gap]!);
    all.push(...some);
    if (some.more !== true) return all;
  }
}

function damaged(missing: number, { journal, seq }: NumberedRow): TapeError {
  const message = `record ${missing} of journal ${Math.abs(journal)} is missing: after ${missing - 1} comes ${seq}`;
  return new TapeError("TAPE_JOURNAL_DAMAGED", message, { journal, missing, found: seq });
}

/** A journal page by page from `first` on, gaps included: for readers that must read a damaged journal, too. */
export async function* journalPages<R extends NumberedRow>(
  page: (from: number) => Promise<Page<R>>,
  first = 1,
): AsyncGenerator<Page<R>> {
  for (let from = first; ; ) {
    const some = await page(from);
    yield some;
    const last = some.at(-1);
    if (some.more !== true || last === undefined) return;
    from = last.seq + 1;
  }
}

/** The current feed, page by page. A page is empty if its query found only records of other tenants. */
export async function* feedPages(
  read: Pick<ReadOps, "feed">,
  { from, tenant }: { readonly from?: string | undefined; readonly tenant?: string | undefined } = {},
): AsyncGenerator<readonly FeedRecord[]> {
  for (let cursor = from; ; ) {
    const page = await read.feed(cursor, undefined, tenant);
    yield page.records;
    if (page.more !== true) return;
    cursor = page.cursor;
  }
}

/** More holders than this are no singletons; a list for operators stops there. */
const maxHolders = 10_000;

/** The holders of named leases, by name: however many runs and items are held, none of these is missing. */
export async function readHolders(read: Pick<ReadOps, "leases">, tenant: string): Promise<LeaseView[]> {
  const holders: LeaseView[] = [];
  for (let above = ""; holders.length < maxHolders; ) {
    const page = await read.leases(tenant, { kind: "name", held: true, above });
    holders.push(...page);
    const last = page.at(-1);
    if (page.more !== true || last === undefined) break;
    above = last.name ?? "";
  }
  return holders;
}

/** A page of leases without any that the holders of names already have, behind those. */
export function withHolders(holders: readonly LeaseView[], leases: readonly LeaseView[]): LeaseView[] {
  return [...holders, ...leases.filter(({ kind }) => kind !== "name")];
}

/** Reads a whole list page by page; each page continues after the name of the last row. */
export async function readList<T>(page: (above: string) => Promise<Page<T>>, nameOf: (row: T) => string): Promise<T[]> {
  const all: T[] = [];
  for (let above = ""; ; ) {
    const some = await page(above);
    all.push(...some);
    const last = some.at(-1);
    if (some.more !== true || last === undefined) return all;
    above = nameOf(last);
  }
}

/** Reads a whole list page by page; each page continues at a group of rows, and no group is read in part. */
export async function readGroups<T>({ page, groupOf, maxRows, large }: GroupedList<T>): Promise<T[]> {
  const all: T[] = [];
  for (let from = 0; ; ) {
    const some = await page(from);
    const last = some.at(-1);
    if (last === undefined || some.length < maxRows) return [...all, ...some];
    const group = groupOf(last);
    const whole = some.filter((row) => groupOf(row) < group);
    all.push(...(whole.length > 0 ? whole : await large(group, some)));
    from = whole.length > 0 ? group : group + 1;
  }
}

export interface GroupedList<T> {
  readonly page: (from: number) => Promise<readonly T[]>;
  readonly groupOf: (row: T) => number;
  /** Rows of a full page. */
  readonly maxRows: number;
  /** All rows of a group that fills a page on its own. */
  readonly large: (group: number, page: readonly T[]) => readonly T[] | Promise<readonly T[]>;
}

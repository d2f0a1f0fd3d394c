import { TapeError } from "../../model/errors.ts";
import type { JournalRecord } from "../../model/records.ts";
import type { Store } from "../../store/contract/store.ts";
import { readAll } from "../../store/read-all.ts";
import type { DriveOptions } from "../core/handle.ts";
import type { Note } from "../replay/history.ts";
import { withKeptRecords } from "./kept-records.ts";

/** What a drive reads of a run: of one that has continued as new only the current generation, whatever its history. */
export interface ReadRun {
  readonly records: readonly JournalRecord[];
  readonly notes: readonly Note[];
  /** The run is a fork whose source is gone. */
  readonly lost?: TapeError;
}

type ReadDeps = Pick<DriveOptions, "store" | "tenant" | "lease">;

export async function readRun(deps: ReadDeps): Promise<ReadRun> {
  const { store, tenant, lease } = deps;
  if (lease.begins > 1) return readGeneration(deps);
  const target = { journal: lease.term.journal };
  const read = (inbox: boolean) => readAll((from) => store.read.journal(tenant, target, { from, inbox }));
  const [found, notes] = await Promise.all([read(false), lease.notes > 0 ? read(true) : []]);
  return { ...(await withKeptRecords(deps, found, () => read(false))), notes };
}

/** The first record of the run, and those of its current generation. */
export async function readRecords({ store, tenant, lease }: ReadDeps): Promise<JournalRecord[]> {
  const target = { journal: lease.term.journal };
  const since = (first: number) => readAll((from) => store.read.journal(tenant, target, { from }), first);
  if (lease.begins === 1) return since(1);
  const [[created], generation] = await Promise.all([
    store.read.journal(tenant, target, { from: 1, limit: 1 }),
    since(lease.begins),
  ]);
  return created === undefined ? generation : [created, ...generation];
}

async function readGeneration(deps: ReadDeps): Promise<ReadRun> {
  const { store, tenant, lease } = deps;
  const { journal } = lease.term;
  const records = await readRecords(deps);
  const continued = records[1];
  if (continued?.kind !== "run.continued") {
    const message = `record ${lease.begins} of journal ${journal} does not begin a generation`;
    throw new TapeError("TAPE_JOURNAL_DAMAGED", message, { journal, missing: lease.begins });
  }
  const { notes, notesTaken } = continued.data;
  const newer = (from: number) => store.read.journal(tenant, { journal }, { from, inbox: true });
  const [carried, since] = await Promise.all([
    readNotes(store, tenant, journal, notes),
    lease.notes > notesTaken ? readAll(newer, notesTaken + 1) : [],
  ]);
  return { records, notes: [...carried, ...since] };
}

/** Notes that are this close are read together. */
const nearby = 64;
/** Reads in flight at a time. */
const width = 16;

/** The notes with these numbers, which may be far apart: what stands between them is not read. */
async function readNotes(store: Store, tenant: string, journal: number, seqs: readonly number[]): Promise<Note[]> {
  const ranges: { readonly from: number; to: number }[] = [];
  for (const seq of [...seqs].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last !== undefined && seq - last.to <= nearby) last.to = seq;
    else ranges.push({ from: seq, to: seq });
  }
  const found: Note[] = [];
  for (let k = 0; k < ranges.length; k += width) {
    const pages = ranges.slice(k, k + width).map((range) => readRange(store, tenant, journal, range));
    for (const notes of await Promise.all(pages)) found.push(...notes);
  }
  const wanted = new Set(seqs);
  return found.filter(({ seq }) => wanted.has(seq));
}

async function readRange(
  store: Store,
  tenant: string,
  journal: number,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<Note[]> {
  return readAll(async (next) => {
    const page = await store.read.journal(tenant, { journal }, { from: next, limit: to - next + 1, inbox: true });
    const more = page.length > 0 && page.at(-1)!.seq < to;
    return Object.assign([...page], { more });
  }, from);
}

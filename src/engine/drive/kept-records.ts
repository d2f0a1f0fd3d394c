import { encode } from "../../base/codec.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import { laneOf } from "../../model/record-context.ts";
import type { ForkData, JournalRecord, NewRecord, RecordData } from "../../model/records.ts";
import type { Store } from "../../store/contract/store.ts";
import { journalPages } from "../../store/read-all.ts";
import { cutOf } from "../context/lanes.ts";
import { positionOf } from "../replay/history.ts";

/** The records with those that a fork kept of another run in their place: replay hands them out like its own. */
export function expandKeptRecords(records: readonly JournalRecord[]): JournalRecord[] {
  if (!records.some(({ kind }) => kind === "fork.kept")) return [...records];
  return records.flatMap((record) => {
    if (record.kind !== "fork.kept") return [record];
    const { journal, seq, token, at } = record;
    return record.data.records.map((kept) => ({ ...kept, journal, seq, token, at }) as JournalRecord);
  });
}

/** A record of another run, as this one keeps it. */
export interface KeptRecord {
  readonly kind: string;
  readonly data: unknown;
}

/** The records that give the kept operations their results. Numbers of another run's inbox mean nothing in this one. */
export function keptRecords(records: readonly JournalRecord[], at: number, lanes?: readonly number[]): KeptRecord[] {
  return records.flatMap((record): KeptRecord[] => {
    if (record.kind === "lane.opened") return [{ kind: record.kind, data: record.data }];
    const pos = positionOf(record);
    if (pos === undefined || pos >= cutOf(at, lanes, laneOf(pos))) return [];
    switch (record.kind) {
      case "gate.resolved": {
        const { note: _, ...data } = record.data;
        return [{ kind: record.kind, data }];
      }
      case "gate.opened": {
        const { timeoutMs: _, notesSeen: __, ...data } = record.data;
        return [{ kind: record.kind, data }];
      }
      // The money was another run's: the code hears that it was granted, and nothing is charged here.
      case "budget.reserved":
        return [{ kind: record.kind, data: { ...record.data, amounts: {} } }];
      case "budget.charged":
        // Without `for` it is no operation: the run gave back at its end what it still held.
        if (record.data.reservation === undefined) return [];
        return [{ kind: record.kind, data: { ...record.data, spent: {}, reserved: {} } }];
      case "effect.dispatched":
      case "effect.observed":
        return [];
      default:
        return [{ kind: record.kind, data: record.data }];
    }
  });
}

/** Beyond this a record of kept ones is begun anew: it must fit what the store takes as one. */
const maxKeptBytes = 512 * 1024;

/**
 * Writes what a fork keeps, with who asked for it, in one append. Its maker does so; if it died in between, the first who
 * drives the run does the same, before anything of it runs.
 */
export async function writeKeptRecords(
  store: Store,
  tenant: string,
  fence: Fence,
  after: number,
  data: ForkData,
  more: readonly NewRecord[] = [],
): Promise<void> {
  const { journal, pos, through, lanes } = data;
  const records = expandKeptRecords(await readJournal(store, tenant, journal, through));
  if (records.length === 0) {
    throw new TapeError("TAPE_BAD_FORK_POINT", "the run it was forked from was deleted before this one began", {
      journal,
    });
  }
  await store.fenced.append(fence, {
    after,
    records: [forkActed(data), ...chunked(keptRecords(records, pos, lanes)), ...more],
  });
}

/** Who asked for a fork, in its journal: as its creation says, whichever process writes it. */
export function forkActed({ journal, pos, through, by, reason, via }: ForkData): NewRecord {
  const detail = { journal, pos, through };
  return { kind: "operator.action", data: { who: by, action: "fork", reason, detail, ...(via && { via }) } };
}

/**
 * The records of a run, with what it keeps if it is a fork. One whose maker died before it had written that: it comes
 * first, or all of it would run again. `lost`: it is gone for good, and a person must decide.
 */
export async function withKeptRecords(
  {
    store,
    tenant,
    lease,
  }: { readonly store: Store; readonly tenant: string; readonly lease: { readonly fence: Fence } },
  records: readonly JournalRecord[],
  reread: () => Promise<JournalRecord[]>,
): Promise<{ readonly records: readonly JournalRecord[]; readonly lost?: TapeError }> {
  const [first] = records;
  if (first?.kind !== "run.created" || first.data.fork === undefined) return { records };
  if (records.some(({ kind }) => kind === "fork.kept")) return { records: expandKeptRecords(records) };
  try {
    await writeKeptRecords(store, tenant, lease.fence, records.at(-1)!.seq, first.data.fork);
  } catch (error) {
    if (!isTapeError(error, "TAPE_BAD_FORK_POINT")) throw error;
    return { records, lost: error };
  }
  return { records: expandKeptRecords(await reread()) };
}

function chunked(kept: readonly KeptRecord[]): NewRecord[] {
  const parts: RecordData<"fork.kept">["records"][] = [[]];
  let size = 0;
  for (const { kind, data } of kept) {
    const bytes = encode(data).length;
    if (size + bytes > maxKeptBytes && size > 0) {
      parts.push([]);
      size = 0;
    }
    parts.at(-1)!.push({ kind, data });
    size += bytes;
  }
  return parts.map((records) => ({ kind: "fork.kept", data: { records } }));
}

/**
 * What a cancelled run asks for is refused, but for giving back what it had reserved: that answers the cancellation, and
 * a fork, which nobody has cancelled, would be told that it had asked for it.
 */
export function withoutCancellationCharges(
  records: readonly JournalRecord[],
  notes: readonly JournalRecord[],
): JournalRecord[] {
  const asked = notes.find(({ kind }) => kind === "cancel.requested")?.seq ?? Number.POSITIVE_INFINITY;
  const told = records.findIndex((record) => record.kind === "notes.taken" && record.data.through >= asked);
  return records.filter(({ kind }, k) => told < 0 || k < told || kind !== "budget.charged");
}

export async function readJournal(
  store: Store,
  tenant: string,
  journal: number,
  through: number,
  inbox = false,
): Promise<JournalRecord[]> {
  const all: JournalRecord[] = [];
  for await (const page of journalPages((from) => store.read.journal(tenant, { journal }, { from, inbox }))) {
    const wanted = page.filter(({ seq }) => seq <= through);
    all.push(...wanted);
    if (wanted.length < page.length) break;
  }
  return all;
}

import { encode } from "../../base/codec.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import { laneOf } from "../../model/record-context.ts";
import type { ForkData, JournalRecord, NewRecord, RecordData } from "../../model/records.ts";
import type { Store } from "../../store/contract/store.ts";
import { journalPages } from "../../store/read-all.ts";
import { cutOf } from "../context/lanes.ts";
import { positionOf } from "../replay/progress.ts";

/** Replaces each `fork.kept` record by the records of the other run that it holds; replay returns them like its own. */
export function expandKeptRecords(records: readonly JournalRecord[]): JournalRecord[] {
  if (!records.some(({ kind }) => kind === "fork.kept")) return [...records];
  return records.flatMap((record) => {
    if (record.kind !== "fork.kept") return [record];
    const { journal, seq, token, at } = record;
    return record.data.records.map((kept) => ({ ...kept, journal, seq, token, at }) as JournalRecord);
  });
}

/** A record of another run that a fork keeps. */
export interface KeptRecord {
  readonly kind: string;
  readonly data: unknown;
}

/** The records with the results of the kept operations, without the note numbers of the other run's inbox. */
export function keptRecords(records: readonly JournalRecord[], at: number, lanes?: readonly number[]): KeptRecord[] {
  return records.flatMap((record): KeptRecord[] => {
    if (record.kind === "lane.opened") return [{ kind: record.kind, data: record.data }];
    if (record.kind === "scope.closed" && record.data.reason === "timeout") return keptTimeout(record.data, at, lanes);
    const pos = positionOf(record);
    if (pos === undefined || pos >= cutOf(at, lanes, laneOf(pos))) return [];
    switch (record.kind) {
      case "gate.resolved": {
        const { note: _, ...data } = record.data;
        return [{ kind: record.kind, data }];
      }
      case "reply.sent": {
        const { note: _, ...data } = record.data;
        return [{ kind: record.kind, data }];
      }
      case "scope.opened": {
        const { timeoutMs: _, ...data } = record.data; // the fork has no such timer; an open scope gets one
        return [{ kind: record.kind, data }];
      }
      case "scope.closed": {
        const { gates: _, timers: __, ...data } = record.data;
        return [{ kind: record.kind, data }];
      }
      case "gate.opened": {
        const { timeoutMs: _, notesSeen: __, ...data } = record.data;
        return [{ kind: record.kind, data }];
      }
      // The source run has paid: the code sees a granted reservation, and nothing is charged here.
      case "budget.reserved":
        return [{ kind: record.kind, data: { ...record.data, amounts: {} } }];
      case "budget.charged":
        // A charge without `reservation` is no operation: the ending run wrote it to close its open reservations.
        if (record.data.reservation === undefined) return [];
        return [{ kind: record.kind, data: { ...withoutOver(record.data), spent: {}, reserved: {} } }];
      case "budget.presumed":
      case "step.failed":
      case "effect.dispatched":
      case "effect.observed":
        return [];
      default:
        return [{ kind: record.kind, data: record.data }];
    }
  });
}

/** The time-out of a scope is no operation: kept if everything that was requested before it is. */
function keptTimeout(data: RecordData<"scope.closed">, at: number, lanes: readonly number[] | undefined): KeptRecord[] {
  const { gates: _, timers: __, ...kept } = data;
  const isKept = data.of < cutOf(at, lanes, laneOf(data.of)) && data.pos <= cutOf(at, lanes, laneOf(data.pos));
  return isKept ? [{ kind: "scope.closed", data: kept }] : [];
}

function withoutOver({ over: _, ...data }: RecordData<"budget.charged">): RecordData<"budget.charged"> {
  return data;
}

/** Above this size another `fork.kept` record is started, so that each one fits the store's limit. */
const maxKeptBytes = 512 * 1024;

/**
 * Writes the kept records of a fork and its operator action in one append. The process that creates the fork does so;
 * if it crashed in between, the first drive does, before any code of the run executes.
 */
export async function writeKeptRecords(
  store: Store,
  tenant: string,
  fence: Fence,
  after: number,
  data: ForkData,
  last: readonly NewRecord[] = [],
): Promise<void> {
  const { journal, pos, through, lanes, begins = 1 } = data;
  const records = expandKeptRecords(await readJournal(store, tenant, journal, { from: begins, through }));
  if (records.length === 0) {
    throw new TapeError("TAPE_BAD_FORK_POINT", "the source run was deleted before this fork started", {
      journal,
    });
  }
  await store.fenced.append(fence, {
    after,
    records: [forkAction(data), ...chunked(keptRecords(records, pos, lanes)), ...last],
  });
}

/** The operator action of a fork, from its creation: the same whichever process writes it. */
export function forkAction({ journal, pos, through, by, reason, via }: ForkData): NewRecord {
  const detail = { journal, pos, through };
  return { kind: "operator.action", data: { by: by, action: "fork", reason, detail, ...(via && { via }) } };
}

/**
 * The records of a run, including what it keeps if it is a fork. If the creating process crashed before it wrote the
 * kept records, this writes them first; otherwise everything would run again. `lost`: the source is gone, so the run is
 * STUCK.
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
 * A run that learns of its cancellation charges its open reservations. A fork is not cancelled, so its code would not
 * request those charges, and it must not keep them: all charges after the cancel note was taken are dropped.
 */
export function withoutCancellationCharges(
  records: readonly JournalRecord[],
  notes: readonly JournalRecord[],
): JournalRecord[] {
  const cancelSeq = notes.find(({ kind }) => kind === "cancel.requested")?.seq ?? Number.POSITIVE_INFINITY;
  const cancelTaken = records.findIndex((record) => record.kind === "notes.taken" && record.data.through >= cancelSeq);
  return records.filter(({ kind }, k) => cancelTaken < 0 || k < cancelTaken || kind !== "budget.charged");
}

export async function readJournal(
  store: Store,
  tenant: string,
  journal: number,
  {
    from: first = 1,
    through = Number.MAX_SAFE_INTEGER,
    inbox = false,
  }: { readonly from?: number; readonly through?: number; readonly inbox?: boolean },
): Promise<JournalRecord[]> {
  const all: JournalRecord[] = [];
  for await (const page of journalPages((from) => store.read.journal(tenant, { journal }, { from, inbox }), first)) {
    const included = page.filter(({ seq }) => seq <= through);
    all.push(...included);
    if (included.length < page.length) break;
  }
  return all;
}

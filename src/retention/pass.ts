import type { Clock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import { hash } from "../base/late-builtins.ts";
import type { Log } from "../base/log.ts";
import { errorFields, reasonOf } from "../base/reason.ts";
import { isTapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";
import {
  type KeptReason,
  policyText,
  type RetentionPass,
  type RetentionPolicy,
  type RetentionState,
  retentionLease,
  rulesOf,
  stateOf,
  stateText,
} from "../model/retention.ts";
import type { DueTree, RetentionOps } from "../store/contract/retention.ts";
import type { Store } from "../store/contract/store.ts";
import type { Archive } from "./archive.ts";
import type { ArchiveHeader } from "./lines.ts";
import { archiveTrees, fileNameOf, gzipped, type Zip } from "./write.ts";

export interface RetentionSettings {
  readonly policy: RetentionPolicy;
  readonly archive: Archive;
  /** Trees of one file and one transaction. */
  readonly batch?: number;
}

/** What a process has done, for its metrics. */
export interface RetentionCounts {
  runs: number;
  bytes: number;
  files: number;
  failures: number;
}

export interface PassDeps {
  readonly store: Store;
  readonly ops: RetentionOps;
  readonly fence: Fence;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
  readonly counts: RetentionCounts;
  /** Compresses a file. */
  readonly zip?: Zip;
  progress(note: string): void;
}

/** Trees of one file: one synchronisation of a disk for all of them, and a transaction of some tens of milliseconds. */
export const defaultBatch = 1_000;
/** Records of one file, unless one tree alone has more. */
const maxRecords = 20_000;
/** How soon a due tree that must stay is checked again. A sink moves on within seconds; an operator takes longer. */
const againMs: Readonly<Record<KeptReason, number>> = {
  live: 600_000,
  unsettled: 600_000,
  sink: 60_000,
  young: 600_000,
};
/** A run that ended this long ago is visible: no transaction that ended one before it is still open. */
const settledMs = 5_000;
/**
 * After each file the pass rests for twice as long as that file took, at most this long: other work of the store and its
 * disk comes first. With a rest as long as the file, steps beside it on SQLite fell to 0.80 of their number.
 */
const maxRestMs = 1_000;
/** Pages of ended runs between two checkpoints. */
const pagesPerCheckpoint = 20;

/**
 * One pass under the lease: dates the runs that have ended since the last one, then archives and deletes what is due.
 *
 * A crash at any line is safe. Before a file is written its name is in the checkpoint; the transaction that deletes its
 * trees also replaces it, by the name of the next file. A name that is still there was not deleted from: the next pass
 * writes the same trees to the same name, or removes the file if the trees are no longer the same.
 */
export async function retentionPass(deps: PassDeps, settings: RetentionSettings): Promise<RetentionPass> {
  const { store, ops, fence } = deps;
  const { store: name, epoch, now } = await ops.identity(fence.tenant);
  const header = { store: name, epoch, tenant: fence.tenant };
  const pass = new Pass(deps, settings, header, now, await currentState(deps, settings.policy, epoch));
  try {
    await pass.date(now - Math.max(store.transactionBoundMs, settledMs));
    await pass.moveDue();
    return pass.done;
  } catch (error) {
    deps.counts.failures++;
    await pass.noteFailure(error).catch(() => {}); // the log has the cause
    throw error;
  }
}

/** Trees of one file. */
interface Batch {
  readonly name: string;
  readonly trees: readonly DueTree[];
  readonly until: number;
  /** There may be further trees. */
  readonly isFull: boolean;
}

class Pass {
  done: RetentionPass;
  readonly #deps: PassDeps;
  readonly #settings: RetentionSettings;
  readonly #header: ArchiveHeader;
  readonly #kept: Partial<Record<KeptReason, number>> = {};
  #state: RetentionState;

  constructor(deps: PassDeps, settings: RetentionSettings, header: ArchiveHeader, at: number, state: RetentionState) {
    this.#deps = deps;
    this.#settings = settings;
    this.#header = header;
    this.#state = state;
    this.done = { at, runs: 0, bytes: 0, files: 0, kept: this.#kept };
  }

  get #size(): number {
    return this.#settings.batch ?? defaultBatch;
  }

  async date(until: number): Promise<void> {
    this.#state = await dateEnded(this.#deps, this.#settings.policy, this.#state, until);
    await this.#save(this.#state);
  }

  async moveDue(): Promise<void> {
    const { signal, progress, clock } = this.#deps;
    for (let next: Batch | undefined; !signal.aborted; ) {
      const startedAt = clock.mono();
      const batch: Batch | "none" | "again" = next ?? (await this.#find());
      if (batch === "none") return;
      if (batch === "again") continue;
      next = await this.#move(batch);
      progress(`${this.done.runs} runs archived`);
      const tookMs = clock.mono() - startedAt;
      if (next !== undefined && tookMs > 0) await clock.sleep(Math.min(maxRestMs, 2 * tookMs), signal);
    }
  }

  noteFailure(error: unknown): Promise<void> {
    this.done = { ...this.done, error: reasonOf(error).slice(0, 500) };
    return this.#save(this.#state);
  }

  async #save(state: RetentionState): Promise<void> {
    this.#state = { ...state, last: this.done };
    await this.#deps.store.fenced.checkpoint(this.#deps.fence, stateText(this.#state));
  }

  /** The first trees that are due, with their name in the checkpoint. */
  async #find(): Promise<Batch | "none" | "again"> {
    const { ops, fence } = this.#deps;
    const { pending } = this.#state;
    const until = pending?.until ?? (await ops.identity(fence.tenant)).now;
    const due = await ops.due(fence.tenant, until, this.#size);
    await postponeKept(this.#deps, due, this.#kept);
    const batch = this.#batchOf(due, until);
    if (pending === undefined && batch === undefined) return due.length === 0 ? "none" : "again";
    if (pending !== undefined && pending.name === batch?.name) return batch;
    if (pending === undefined) {
      await this.#save({ ...this.#state, pending: { name: batch!.name, until } });
      return batch!;
    }
    await this.#abandon(pending.name);
    return "again";
  }

  /**
   * No tombstone names this file: its trees are still in the store, and no longer as they were. The checkpoint counts it
   * before the file is removed, and every later name has the count. So a process that is paused here, and loses its lease,
   * never removes a file that its successor has written.
   */
  async #abandon(name: string): Promise<void> {
    const { log } = this.#deps;
    const { archive } = this.#settings;
    const { pending: _dropped, ...rest } = this.#state;
    await this.#save({ ...rest, abandoned: (rest.abandoned ?? 0) + 1 });
    if (archive.remove === undefined) return log("warn", "retention.unused_file", { archive: name });
    await archive.remove(name);
  }

  #batchOf(due: readonly DueTree[], until: number): Batch | undefined {
    const trees = firstOf(due.filter(({ kept }) => kept === undefined));
    if (trees.length === 0) return undefined;
    const isFull = due.length >= this.#size;
    return { name: fileNameOf(this.#header, trees, this.#state.abandoned ?? 0), trees, until, isFull };
  }

  /** Archives and deletes a batch. Returns the next one if its name is in the checkpoint already. */
  async #move({ name, trees, until, isFull }: Batch): Promise<Batch | undefined> {
    const { ops, fence, signal, log, counts, zip = gzipped } = this.#deps;
    const { sha256, bytes } = await archiveTrees(ops, this.#settings.archive, this.#header, trees, {
      name,
      signal,
      zip,
    });
    const next = isFull ? await this.#after(trees, until) : undefined;
    const { runs, files, bytes: before } = this.done;
    const more = trees.reduce((sum, tree) => sum + tree.runs.length, 0);
    const done = { ...this.done, runs: runs + more, bytes: before + bytes, files: files + 1 };
    const { pending: _written, ...rest } = this.#state;
    const state = { ...rest, ...(next && { pending: { name: next.name, until } }), last: done };
    try {
      counts.runs += await ops.prune(fence, trees, { archive: name, sha256 }, stateText(state));
    } catch (error) {
      // A tree changed while it was archived. It is read again; the file is replaced or removed.
      if (!isTapeError(error, "TAPE_VERSION_CONFLICT")) throw error;
      log("info", "retention.changed", { archive: name, ...errorFields(error) });
      return undefined;
    }
    this.#state = state;
    this.done = done;
    counts.bytes += bytes;
    counts.files++;
    return next;
  }

  /**
   * The trees behind these. Their name goes into the checkpoint with the deletion of these: after it, a process that shares
   * a SQLite file leaves it to the others for a while, and archives meanwhile.
   */
  async #after(trees: readonly DueTree[], until: number): Promise<Batch | undefined> {
    const { ops, fence, store } = this.#deps;
    const limit = trees.length + this.#size;
    if (limit > store.limits.batchItems) return undefined;
    const roots = new Set(trees.map(({ root }) => root));
    const due = await ops.due(fence.tenant, until, limit);
    return this.#batchOf(
      due.filter(({ root }) => !roots.has(root)),
      until,
    );
  }
}

/** Where the last pass ended. Another policy, or a restored store, dates every ended run again. */
async function currentState(
  { store, fence }: PassDeps,
  policy: RetentionPolicy,
  epoch: number,
): Promise<RetentionState> {
  const lease = await store.read.lease(fence.tenant, { name: retentionLease });
  const found = stateOf(lease?.checkpoint);
  const of = hash("sha256", policyText(policy)).slice(0, 16);
  const rules = rulesOf(policy);
  if (found?.policy === of && found.epoch === epoch) return { ...found, rules };
  const { pending, last, abandoned } = found ?? {};
  return { policy: of, rules, epoch, datedAt: -1, datedJournal: 0, ...defined({ pending, last, abandoned }) };
}

async function dateEnded(
  deps: PassDeps,
  policy: RetentionPolicy,
  from: RetentionState,
  until: number,
): Promise<RetentionState> {
  let state = from;
  for (let pages = 1; !deps.signal.aborted; pages++) {
    const after = { at: state.datedAt, journal: state.datedJournal };
    const { next } = await deps.ops.date(deps.fence, policy, after, until);
    if (next === undefined) break;
    state = { ...state, datedAt: next.at, datedJournal: next.journal };
    if (pages % pagesPerCheckpoint === 0) await deps.store.fenced.checkpoint(deps.fence, stateText(state));
  }
  return state;
}

async function postponeKept(
  { ops, fence }: PassDeps,
  due: readonly DueTree[],
  counts: Partial<Record<KeptReason, number>>,
): Promise<void> {
  for (const [kept, trees] of Map.groupBy(due, ({ kept }) => kept)) {
    if (kept === undefined) continue;
    counts[kept] = (counts[kept] ?? 0) + trees.length;
    const roots = trees.map(({ root }) => root);
    await ops.postpone(fence, roots, againMs[kept]);
  }
}

/** As many trees as one file may have. */
function firstOf(trees: readonly DueTree[]): readonly DueTree[] {
  let records = 0;
  const end = trees.findIndex(({ journals }, k) => {
    records += journals.reduce((sum, { seq }) => sum + seq, 0);
    return k > 0 && records > maxRecords;
  });
  return end < 0 ? trees : trees.slice(0, end);
}

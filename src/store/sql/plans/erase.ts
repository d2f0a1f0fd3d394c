import { erasedWord, isErased } from "../../../base/codec.ts";
import { erasedLabels, erasedText } from "../../../model/erasure.ts";
import { TapeError } from "../../../model/errors.ts";
import type { Limits } from "../../../model/limits.ts";
import { notFound } from "../../../model/not-found.ts";
import { encodeBody } from "../../../model/projection.ts";
import type { RecordData } from "../../../model/records.ts";
import type { AuditInfo, EraseStep } from "../../contract/store.ts";
import { decodeRecord } from "../../decode-rows.ts";
import { type Plan, query, queryRow, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { type EraseBudget, type ErasePlace, eraseRecords, rowsAtOnce, writeErased } from "./erase-records.ts";
import { type Member, membersOf, unsettledOf } from "./prune.ts";
import { recordOperatorAction } from "./service.ts";

/**
 * Erasure of a tree of ended runs, in short transactions. The first one decides, and marks every run by its outcome. Each
 * run is then erased record by record, together with the rows that the records explain; its first record is the last.
 * So a run whose first record is erased holds no payload, and a repeat after a crash starts again at the first run.
 */

/** Chunks and parts of blobs that are deleted together: each may be large. */
const besideAtOnce = 100;
/** Retention leaves a tree alone for this long after each part. */
const postponeMs = 3_600_000;

export interface EraseRequest {
  readonly tenant: string;
  readonly id: string;
  readonly tree: boolean;
  readonly audit: AuditInfo;
  readonly after: ErasePlace | undefined;
}

export type ErasedPart = Omit<EraseStep, "next"> & { readonly next?: ErasePlace };

export function* erasePlan(request: EraseRequest, limits: Limits): Plan<ErasedPart> {
  const { tenant, id, after } = request;
  const target = yield* queryRow("erase.target", { tenant, id });
  if (target === undefined) throw yield* missing(tenant, id);
  const root = Number(target.root);
  yield* query("prune.lock", { tenant, roots: JSON.stringify([root]) });
  const first = after === undefined ? yield* begin(request, root) : undefined;
  if (first?.already) return { records: 0, ...first };
  yield* query("erase.postpone", { root, delayMs: postponeMs });
  return { ...first, ...(yield* erasePart(request, root, limits)) };
}

/** Decides, records the action, and marks the runs; nothing, if they are erased already. */
function* begin(request: EraseRequest, root: number): Plan<Omit<ErasedPart, "records">> {
  const { tenant, id, audit } = request;
  const members = yield* membersOf(tenant, [root]);
  if (members.length === 0) throw yield* missing(tenant, id);
  yield* assertErasable(request, members);
  const copies = yield* copiesOf(root);
  const about = { runs: members.length, ...(copies.length > 0 && { copies }) };
  if (yield* isFirstErased(Number(members.at(-1)!.journal))) return { ...about, already: true };
  yield* recordOperatorAction("run.erase", audit, { tenant, run: id, runs: members.length });
  const journals = JSON.stringify(members.map(({ journal }) => Number(journal)));
  yield* query("erase.flag", { runs: journals, erased: erasedText });
  return about;
}

/** Says where the payloads of a deleted run are, if an archive has them. */
function* missing(tenant: string, id: string): Plan<TapeError> {
  const [archived] = yield* queryRows("retention.archived", { tenant, id, above: "", limit: 1 });
  if (archived !== undefined) {
    const { archive } = archived;
    const message = `run ${id} was archived and deleted: the file ${archive} of the archive has its payloads`;
    return new TapeError("TAPE_RUN_GONE", message, { run: id, archive });
  }
  return notFound("run", id);
}

function* assertErasable({ id, tree }: EraseRequest, members: readonly Member[]): Plan<void> {
  if (!tree && members.length > 1) {
    const message = `run ${id} is one of ${members.length} runs of a tree, whose records have copies of its payloads`;
    throw new TapeError("TAPE_BAD_INPUT", `${message}: erase the tree`, { field: "tree", run: id });
  }
  const live = members.find(({ ended_at }) => ended_at === null);
  if (live !== undefined) throw new TapeError("TAPE_RUN_LIVE", `run ${live.id} has not ended`, { run: live.id });
  const unsettled = yield* unsettledOf(members);
  const open = members.find(({ journal }) => unsettled.has(Number(journal)));
  if (open === undefined) return;
  const message = `run ${open.id} has an effect in doubt or an open obligation, which needs its payloads`;
  throw new TapeError("TAPE_RUN_UNSETTLED", message, { run: open.id });
}

function* firstOf(journal: number): Plan<RowOf<"erase.page"> | undefined> {
  return yield* queryRow("erase.page", { journal, above: 0, limit: 1 });
}

const createdOf = (journal: number, { seq, kind, body }: RowOf<"erase.page">): RecordData<"run.created"> => {
  const stored = { journal, seq: Number(seq), token: 0n, at: 0, kind, body };
  return decodeRecord(stored).data as RecordData<"run.created">;
};

function* isFirstErased(journal: number): Plan<boolean> {
  const first = yield* firstOf(journal);
  return first !== undefined && isErased(createdOf(journal, first).input);
}

/** Runs outside the tree with copies of what the root was started with. */
function* copiesOf(root: number): Plan<readonly string[]> {
  const first = yield* firstOf(root);
  if (first === undefined) return [];
  const { startedBy, forkedFrom } = createdOf(root, first);
  return [startedBy, forkedFrom].filter((run) => run !== undefined);
}

function* erasePart(request: EraseRequest, root: number, limits: Limits): Plan<Omit<ErasedPart, "runs">> {
  const { tenant, after } = request;
  const budget: EraseBudget = { rows: rowsAtOnce, bytes: limits.pageBytes, records: 0, freed: 0 };
  let place = after ?? { run: 0, journal: 1, seq: 0 };
  const done = function* (next?: ErasePlace): Plan<Omit<ErasedPart, "runs">> {
    if (budget.freed > 0) yield* query("erase.usage", { tenant, bytes: budget.freed });
    return { records: budget.records, ...(next && { next }) };
  };
  for (;;) {
    const runs = yield* queryRows("erase.tree", { tenant, root, from: place.run, limit: rowsAtOnce });
    for (const { journal: run, id, labels } of runs) {
      if (Number(run) !== place.run) place = { run: Number(run), journal: 1, seq: 0 };
      const stop = yield* eraseRecords(place, budget, limits);
      if (stop !== undefined) return yield* done(stop);
      place = { run: place.run, journal: 0, seq: 0 };
      if (!(yield* eraseBeside(place.run, budget))) return yield* done(place);
      yield* eraseRest(tenant, { run: place.run, id, labels }, budget);
      place = { run: place.run + 1, journal: 1, seq: 0 };
      if (budget.rows <= 0) return yield* done(place);
    }
    if (runs.length < rowsAtOnce) return yield* done();
  }
}

interface ErasedRun {
  readonly run: number;
  readonly id: string;
  readonly labels: string | null;
}

/** Chunks and blobs are beside the journal: they are deleted. false: some are left. */
function* eraseBeside(run: number, budget: EraseBudget): Plan<boolean> {
  for (const sql of ["erase.blobs", "erase.chunks"] as const) {
    const limit = Math.max(1, Math.min(budget.rows, besideAtOnce));
    const { count, rows } = yield* query(sql, { run, limit });
    if (sql === "erase.blobs") {
      for (const { bytes } of rows as readonly RowOf<"erase.blobs">[]) budget.freed += Number(bytes);
    }
    budget.rows -= count;
    if (count === limit) return false;
  }
  yield* query("erase.streams", { run });
  return true;
}

/** The rest of a run: its labels, what it has published, and its first record. */
function* eraseRest(tenant: string, { run, id, labels }: ErasedRun, budget: EraseBudget): Plan<void> {
  yield* query("erase.published", { run, erased: erasedText });
  yield* query("erase.lease", { run, word: erasedWord });
  if (labels !== null) {
    yield* query("erase.labels", { run, word: erasedWord });
    yield* query("erase.run", { run, labels: JSON.stringify(erasedLabels(JSON.parse(labels))) });
  }
  const first = yield* firstOf(run);
  if (first === undefined || isErased(createdOf(run, first).input)) return;
  yield* writeErased(run, [first], budget);
  const data: RecordData<"run.erased"> = { tenant, id };
  yield* query("store.record", { kind: "run.erased", body: encodeBody(data) });
}

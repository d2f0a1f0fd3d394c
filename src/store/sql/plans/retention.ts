import { TapeError } from "../../../model/errors.ts";
import type { Fence } from "../../../model/fence.ts";
import type { Limits } from "../../../model/limits.ts";
import {
  dueAtOf,
  type KeptReason,
  type RetentionPolicy,
  retentionLease,
  stateOf,
  treeChanged,
} from "../../../model/retention.ts";
import { maxCounted } from "../../contract/census.ts";
import type {
  ArchivedFile,
  ArchivedRun,
  DueTree,
  EndedPage,
  EndedPlace,
  EndedRoot,
  PartPlace,
  RawBlob,
  RawChunk,
  RawPlace,
  RawRecord,
  RetentionView,
  TreeRun,
} from "../../contract/retention.ts";
import type { AuditInfo, Page } from "../../contract/store.ts";
import { mapPage } from "../../page.ts";
import { staleError } from "../../validate/arguments.ts";
import { pageLimit } from "../../validate/entry.ts";
import { queryPage } from "../paging.ts";
import { type Plan, type PlanContext, query, queryRow, queryRows } from "../plan.ts";
import { whyFenced } from "./append.ts";
import { checkpointPlan, type FeedPosition, isBefore, passedPosition } from "./events.ts";
import { deleteRuns, type Head, headsOf, type Member, membersOf, unsettledOf } from "./prune.ts";
import { leasePlan } from "./reads.ts";
import { recordOperatorAction } from "./service.ts";

/** Plans of the reactor `retention`. */

type OpenCursor = (cursor: string) => string;

/** Only the holder of the named lease writes. */
function* assertHolder(fence: Fence): Plan<void> {
  const { tenant, journal, token, nonce } = fence;
  const row = yield* queryRow("fence.name", { tenant, journal, token, nonce });
  if (row?.name === retentionLease) return;
  if (row === undefined) throw staleError(fence, yield* whyFenced(fence));
  throw new TapeError("TAPE_BAD_INPUT", `${row.name} is not the lease ${retentionLease}`, { field: "fence", journal });
}

export function* endedPlan(
  tenant: string,
  after: EndedPlace,
  until: number,
  limit: number | undefined,
  limits: Limits,
): Plan<EndedPage> {
  const place = { afterAt: after.at, afterJournal: after.journal };
  const rows = yield* queryRows("retention.walk", { tenant, until, ...place, limit: pageLimit(limit, limits) });
  const last = rows.at(-1);
  const roots = rows.flatMap(({ journal, workflow, ended_at, parent, retain_ms }) =>
    parent !== null
      ? []
      : [
          {
            journal: Number(journal),
            workflow,
            endedAt: Number(ended_at),
            retainMs: retain_ms === null ? null : Number(retain_ms),
          },
        ],
  );
  const next = last && { at: Number(last.ended_at), journal: Number(last.journal) };
  return { roots, ...(next && { next }) };
}

/** Pages of one transaction: a process that shares a SQLite file rests after each. */
const pagesAtOnce = 5;

/** One page of a given size, or several of the usual one. */
function* endedPages(
  tenant: string,
  after: EndedPlace,
  until: number,
  limit: number | undefined,
  limits: Limits,
): Plan<EndedPage> {
  const roots: EndedRoot[] = [];
  let next: EndedPlace | undefined;
  for (let pages = 0; pages < (limit === undefined ? pagesAtOnce : 1); pages++) {
    const page: EndedPage = yield* endedPlan(tenant, next ?? after, until, limit, limits);
    if (page.next === undefined) break;
    roots.push(...page.roots);
    next = page.next;
  }
  return { roots, ...(next && { next }) };
}

export function* datePlan(
  fence: Fence,
  policy: RetentionPolicy,
  after: EndedPlace,
  until: number,
  limit: number | undefined,
  limits: Limits,
): Plan<EndedPage> {
  yield* assertHolder(fence);
  const { tenant } = fence;
  const page = yield* endedPages(tenant, after, until, limit, limits);
  const dated: (readonly [number, number])[] = [];
  const never: number[] = [];
  for (const root of page.roots) {
    const dueAt = dueAtOf(policy, root);
    if (dueAt === undefined) never.push(root.journal);
    else dated.push([root.journal, dueAt]);
  }
  if (dated.length > 0) yield* query("retention.put", { tenant, rows: JSON.stringify(dated) });
  if (never.length > 0) yield* query("retention.drop", { tenant, journals: JSON.stringify(never) });
  return page;
}

export function* duePlan(tenant: string, until: number, limit: number, open: OpenCursor): Plan<DueTree[]> {
  const rows = yield* queryRows("retention.due", { tenant, until, limit });
  const dueAt = new Map(rows.map((row) => [Number(row.journal), Number(row.due_at)]));
  return (yield* treesOf(tenant, dueAt, until, open)).trees;
}

interface FoundTrees {
  readonly trees: DueTree[];
  readonly members: readonly Member[];
  readonly heads: readonly Head[];
}

/** The trees of these roots, and which of them must stay. A root that does not exist is left out. */
function* treesOf(tenant: string, dueAt: ReadonlyMap<number, number>, now: number, open: OpenCursor): Plan<FoundTrees> {
  if (dueAt.size === 0) return { trees: [], members: [], heads: [] };
  const members = yield* membersOf(tenant, [...dueAt.keys()]);
  const heads = yield* headsOf(members);
  const unsettled = yield* unsettledOf(members);
  const passed = yield* passedPosition(tenant, open);
  const byRoot = Map.groupBy(members, ({ root }) => Number(root));
  const byRun = Map.groupBy(heads, ({ run }) => Number(run));
  const trees = [...dueAt].flatMap(([root, due]): DueTree[] => {
    const own = byRoot.get(root);
    if (own === undefined) return [];
    const journals = own.flatMap(({ journal }) => byRun.get(Number(journal)) ?? []);
    const kept = keptFor(own, { due, now, journals, unsettled, passed });
    return [
      {
        root,
        dueAt: due,
        ...(kept && { kept }),
        runs: own.map(treeRunOf),
        journals: journals.map(({ run, journal, seq }) => ({
          run: Number(run),
          journal: Number(journal),
          seq: Number(seq),
        })),
      },
    ];
  });
  return { trees, members, heads };
}

interface TreeFacts {
  readonly due: number;
  readonly now: number;
  readonly journals: readonly Head[];
  readonly unsettled: ReadonlySet<number>;
  readonly passed: FeedPosition | undefined;
}

/** A tree is kept from the end of its last run: each of its runs must have ended as long ago as the root must have. */
function keptFor(members: readonly Member[], facts: TreeFacts): KeptReason | undefined {
  const { due, now, journals, unsettled, passed } = facts;
  if (members.some(({ ended_at }) => ended_at === null)) return "live";
  if (members.some(({ journal }) => unsettled.has(Number(journal)))) return "unsettled";
  const rootEnded = Number(members.find(({ parent }) => parent === null)?.ended_at);
  if (members.some(({ ended_at }) => due - rootEnded + Number(ended_at) > now)) return "young";
  if (passed !== undefined && journals.some(({ stamp }) => isBefore(passed, positionOf(stamp!)))) return "sink";
  return undefined;
}

function positionOf(stamp: string): FeedPosition {
  const [first = 0n, journal = 0n, seq = 0n] = stamp.split(".").map(BigInt);
  return [first, journal, seq];
}

const treeRunOf = (row: Member): TreeRun => ({
  journal: Number(row.journal),
  id: row.id,
  workflow: row.workflow,
  version: row.version,
  status: row.phase,
  inputHash: row.input_hash,
  labels: row.labels,
  parent: row.parent === null ? null : Number(row.parent),
  createdAt: Number(row.created_at),
  endedAt: row.ended_at === null ? null : Number(row.ended_at),
  token: row.token!,
  ...(row.erased && { erased: true as const }),
});

export function* postponePlan(fence: Fence, roots: readonly number[], dueAt: number): Plan<void> {
  yield* assertHolder(fence);
  yield* query("retention.postpone", { tenant: fence.tenant, journals: JSON.stringify(roots), dueAt });
}

/** Compares again what `due` found, then deletes: between the two, the trees were archived. */
export function* pruneArchivedPlan(
  fence: Fence,
  trees: readonly DueTree[],
  file: ArchivedFile,
  checkpoint: string,
  now: number,
  open: OpenCursor,
): Plan<number> {
  yield* assertHolder(fence);
  yield* checkpointPlan(fence, checkpoint);
  const { tenant } = fence;
  const roots = trees.map(({ root }) => root);
  yield* query("prune.lock", { tenant, roots: JSON.stringify(roots) });
  const found = yield* treesOf(tenant, new Map(trees.map(({ root, dueAt }) => [root, dueAt])), now, open);
  const byRoot = new Map(found.trees.map((tree) => [tree.root, tree]));
  for (const tree of trees) {
    const current = byRoot.get(tree.root);
    if (current === undefined || current.kept !== undefined || headsText(current) !== headsText(tree))
      throw treeChanged(tree.root);
  }
  return yield* deleteRuns(tenant, found.members, found.heads, file);
}

/** Records are only appended or erased, so the same numbers and the same erased runs mean the same tree. */
const headsText = ({ journals, runs }: DueTree): string =>
  [
    ...journals.map(({ journal, seq }) => `${journal}:${seq}`),
    ...runs.flatMap(({ journal, erased }) => (erased ? [`erased ${journal}`] : [])),
  ]
    .sort()
    .join(" ");

export function* rawRecordsPlan(
  tenant: string,
  journals: readonly number[],
  { after, through = Number.MAX_SAFE_INTEGER }: RawPlace,
  limits: Limits,
): Plan<Page<RawRecord>> {
  const place = { afterJournal: after?.journal ?? Number.MIN_SAFE_INTEGER, afterSeq: after?.seq ?? 0, through };
  const few = { limit: limits.pageRows, pageBytes: limits.pageBytes };
  const rows = yield* queryPage("retention.records", { tenant, journals: JSON.stringify(journals), ...place, ...few });
  return mapPage(rows, ({ journal, seq, token, at, kind, body }) => ({
    journal: Number(journal),
    seq: Number(seq),
    token: token!,
    at: Number(at),
    kind,
    body,
  }));
}

const partPlace = (after: PartPlace | undefined) => ({
  afterRun: after?.run ?? 0,
  afterName: after?.name ?? "",
  afterN: after?.n ?? 0,
});

export function* rawChunksPlan(
  tenant: string,
  runs: readonly number[],
  after: PartPlace | undefined,
  limits: Limits,
): Plan<Page<RawChunk>> {
  const few = { limit: limits.pageRows, pageBytes: limits.pageBytes };
  const rows = yield* queryPage("retention.chunks", {
    tenant,
    runs: JSON.stringify(runs),
    ...partPlace(after),
    ...few,
  });
  return mapPage(rows, ({ run, stream, chunk_offset, part, token, at, body }) => ({
    run: Number(run),
    stream,
    offset: Number(chunk_offset),
    part: Number(part),
    token: token!,
    at: Number(at),
    body,
  }));
}

export function* rawBlobsPlan(
  tenant: string,
  runs: readonly number[],
  after: PartPlace | undefined,
  limits: Limits,
): Plan<Page<RawBlob>> {
  const few = { limit: limits.pageRows, pageBytes: limits.pageBytes };
  const rows = yield* queryPage("retention.blobs", { tenant, runs: JSON.stringify(runs), ...partPlace(after), ...few });
  return mapPage(rows, ({ journal, blob, n, chunks, bytes, body }) => ({
    run: Number(journal),
    blob,
    n: Number(n),
    chunks: Number(chunks),
    bytes: Number(bytes),
    body,
  }));
}

export function* archivedPlan(
  tenant: string,
  page: { readonly id?: string; readonly above?: string; readonly limit?: number },
  limits: Limits,
): Plan<Page<ArchivedRun>> {
  const few = { limit: pageLimit(page.limit, limits), pageBytes: limits.pageBytes };
  const { id = null, above = "" } = page;
  const rows = yield* queryPage("retention.archived", { tenant, id, above, ...few });
  return mapPage(rows, (row) => ({
    id: row.id,
    archive: row.archive!,
    prunedAt: Number(row.at),
    createdAt: row.created_at === null ? null : Number(row.created_at),
    endedAt: row.ended_at === null ? null : Number(row.ended_at),
  }));
}

export function* retentionPlan(tenant: string, withinMs: number): Plan<RetentionView> {
  const figures = (yield* queryRow("retention.figures", { tenant }))!;
  const now = Number(figures.now);
  const rows = yield* queryRows("retention.preview", { tenant, until: now + withinMs, cap: maxCounted });
  const workflows = rows.map((row) => ({
    workflow: row.workflow,
    trees: Number(row.trees),
    endedAt: Number(row.ended_at),
    dueAt: Number(row.due_at),
  }));
  const lease = yield* leasePlan(tenant, { name: retentionLease });
  const state = stateOf(lease?.checkpoint);
  return {
    due: workflows.reduce((sum, { trees }) => sum + trees, 0),
    lagMs: figures.first === null ? 0 : Math.max(0, now - Number(figures.first)),
    workflows,
    ...(state && { state }),
  };
}

/** The hint reaches processes that listen; the others find the work at their next pass. */
export function* requestRetentionPlan(context: PlanContext, tenant: string, audit: AuditInfo): Plan<void> {
  yield* recordOperatorAction("retention.run", audit, { tenant });
  context.wake({ of: "reactor", reactor: "retention", tenant });
}

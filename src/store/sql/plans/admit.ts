import { defined } from "../../../base/defined.ts";
import { admissionOf, type KeyState, type QueueState, quantumOf } from "../../../model/admission.ts";
import { leavesRun, pinOf } from "../../../model/build.ts";
import { TapeError } from "../../../model/errors.ts";
import { makeFence } from "../../../model/fence.ts";
import type { Term } from "../../../model/lease.ts";
import { encodeBody } from "../../../model/projection.ts";
import { maxPriority, resumedClass } from "../../../model/queue.ts";
import { type Pace, rateRoom } from "../../../model/queue-turns.ts";
import type { RecordData, TermReason } from "../../../model/records.ts";
import type { FindRequest } from "../../contract/store.ts";
import { leaseRowOf, previousTermOf } from "../../lease-rules.ts";
import { type Plan, query, queryRow, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { generationOf } from "./claim.ts";
import { sweepKeys } from "./sweep.ts";

/** How many times keys are picked in one transaction: once for each class, and more if lists are shorter than shares. */
export const maxRounds = 12;

/** The queue that admits, as of its lock. */
export interface AdmittingQueue extends QueueState {
  readonly id: number;
  readonly name: string;
  readonly concurrency: number | undefined;
  /** First starts so far. */
  readonly started: number;
}

export function admittingQueueOf(row: RowOf<"queue.claim">): AdmittingQueue {
  return {
    id: Number(row.id),
    name: row.name,
    concurrency: numberOr(row.concurrency),
    nowMs: Number(row.now),
    tat: Number(row.tat),
    vnow: Number(row.vnow),
    started: Number(row.started),
    pace: paceIn(row.rate_us, row.rate_burst),
    keyPace: paceIn(row.key_rate_us, row.key_rate_burst),
    keyCap: numberOr(row.key_concurrency),
  };
}

const numberOr = (value: unknown): number | undefined => (value === null ? undefined : Number(value));
const paceIn = (us: unknown, burst: unknown): Pace | undefined =>
  us === null ? undefined : { intervalUs: Number(us), burst: Number(burst) };

/** While the rate allows no start, only runs that continue are admitted. */
export const maxClassOf = ({ tat, nowMs, pace }: QueueState): number =>
  rateRoom(tat, nowMs, pace) > 0 ? maxPriority : resumedClass;

/** A run that waits in a queue, as of the lock of the queue. */
export interface WaitingRun {
  readonly journal: number;
  readonly class: number;
  /** null: it is held, or locked by another process. */
  readonly token: string | null;
  readonly notes: number | null;
  readonly owner: string | null;
  readonly last_end_reason: string | null;
  readonly head: number | null;
  readonly waited_ms: number | null;
  readonly run_id: string | null;
  readonly created: string | null;
  readonly workflow: string | null;
  readonly build: string | null;
  readonly begins?: number | null;
}

/**
 * Gives the free slots of a queue to the runs whose turn it is, and a term with each, in one transaction. Locks the
 * queue first: no other process admits runs to it until the commit, so the counters can only fall meanwhile.
 */
export function* admitPlan(request: FindRequest, name: string, room: number): Plan<Term[]> {
  const row = yield* queryRow("queue.claim", { tenant: request.tenant!, name });
  if (row === undefined) return [];
  let queue = admittingQueueOf(row);
  if (queue.keyPace !== undefined) yield* query("partition.due", { queue: queue.id });
  const running = Number((yield* queryRow("queue.busy", { queue: queue.id }))?.running);
  let free = Math.min(room, (queue.concurrency ?? Number.POSITIVE_INFINITY) - running);
  const terms: Term[] = [];
  for (let round = 0; round < maxRounds && free > 0; round++) {
    const waiting = yield* pickKeys(queue, request, free);
    const admission = admissionOf(queue, waiting, free);
    if (admission.keys.length === 0) break;
    for (const { key, starts, ...after } of admission.keys) {
      const { runs } = waiting.find((one) => one.key === key)!;
      for (const run of runs.slice(0, starts)) terms.push(yield* admitRun(run, queue, key, request));
      yield* query("partition.admit", { queue: queue.id, key, starts, cap: queue.keyCap ?? null, ...after });
    }
    const { tat, vnow, starts, firstStarts } = admission;
    yield* query("queue.advance", { id: queue.id, tat, vnow, starts: firstStarts });
    yield* sweepKeys({ ...queue, vnow }, firstStarts, admission.keys.at(-1)!.key);
    queue = { ...queue, tat, vnow, started: queue.started + firstStarts };
    free -= starts;
  }
  return terms;
}

const backlogName = (build: string | null, workflow: string): string => `${build ?? ""}@${workflow}`;

/** The workflows whose runs the process may admit, as $backlog_of names them: new ones, and those of its own build. */
export function admittedBacklogs({ workflows = [], build: claim }: FindRequest): string[] {
  const free = workflows.filter((workflow) => !leavesRun(null, workflow, claim));
  const own = (claim?.pinned ?? []).map((workflow) => backlogName(claim!.build, workflow));
  return [...free.map((workflow) => backlogName(null, workflow)), ...own];
}

type HeadRow = RowOf<"queue.heads">;
type PickedKey = KeyState & { readonly runs: readonly HeadRow[] };

function* pickKeys(queue: AdmittingQueue, request: FindRequest, free: number): Plan<PickedKey[]> {
  const served = new Set(admittedBacklogs(request));
  const rows = yield* queryRows("partition.ready", {
    queue: queue.id,
    maxClass: maxClassOf(queue),
    workflows: JSON.stringify(admittedBacklogs(request)),
    limit: free,
  });
  const weights = rows.reduce((sum, { weight }) => sum + Number(weight), 0);
  const keys: PickedKey[] = [];
  for (const { key, class: of, vtime, entered, running, weight, tat } of rows) {
    const limit = quantumOf(Number(weight), weights, rows.length, free);
    const runs = yield* queryRows("queue.heads", { queue: queue.id, key, limit });
    const state = { class: Number(of), vtime: Number(vtime), entered: Number(entered), weight: Number(weight) };
    // A run that cannot be taken is waited for, never passed.
    const blocked = runs.findIndex(
      (run) => run.token === null || run.class !== state.class || !served.has(backlogName(run.build, run.workflow)),
    );
    const available = blocked < 0 ? runs.length : blocked;
    keys.push({ key, ...state, running: Number(running), tat: Number(tat), available, runs });
  }
  return keys;
}

function* admitRun(run: HeadRow, queue: AdmittingQueue, key: string, request: FindRequest): Plan<Term> {
  const { owner, label, reactor, ttlMs } = request.claimant;
  const { journal } = run;
  const { reason, body } = yield* termStart(queue, key, request, run);
  const token = BigInt(run.next_token!);
  const claim = { nonce: request.nonce, owner, label, reactor, ttlMs, reason };
  const { count } = yield* query("lease.admit", { journal, token: BigInt(run.token!), nextToken: token, ...claim });
  if (count !== 1) throw new TapeError("TAPE_INVARIANT", "a run that waited could not be taken", { journal });
  yield* query("record.append", { journal, seq: run.head! + 1, token, kind: "term.started", body });
  yield* query("slot.admit", { journal });
  const build = pinOf(run.build, run.workflow, request.build);
  if (build !== undefined) yield* query("lease.pin", { journal, build });
  if (run.expires) yield* query("timers.unexpire", { run: journal });
  return termOf(queue, request, run, { token, reason });
}

/** Reason and record of the term. A holder that vanished is an operator's, which is rare: then the whole lease is read. */
export function* termStart(
  queue: AdmittingQueue,
  key: string,
  { claimant, build: claim }: FindRequest,
  run: WaitingRun,
): Plan<{ readonly reason: TermReason; readonly body: string }> {
  const { owner, label, reactor, ttlMs } = claimant;
  const row = run.owner === null ? undefined : yield* queryRow("lease.read", { journal: Number(run.journal) });
  const reason = row !== undefined ? "recovery" : run.last_end_reason === null ? "start" : "wake";
  const previous = row && previousTermOf(leaseRowOf(row), Number(row.now), Number(run.head), reason);
  const admitted = { queue: queue.name, key, waitedMs: Math.max(0, Number(run.waited_ms)) };
  const build = pinOf(run.build, run.workflow ?? "", claim);
  const data: RecordData<"term.started"> = { owner, label, reactor, ttlMs, reason, admitted, ...defined({ build }) };
  return { reason, body: encodeBody(previous === undefined ? data : { ...data, previous }) };
}

export function termOf(
  queue: AdmittingQueue,
  request: FindRequest,
  run: WaitingRun,
  granted: { readonly token: bigint; readonly reason: TermReason },
): Term {
  const { claimant, nonce } = request;
  const tenant = request.tenant!;
  const journal = Number(run.journal);
  return {
    fence: makeFence(tenant, journal, granted.token, nonce),
    journal,
    kind: "run",
    tenant,
    run: journal,
    ttlMs: claimant.ttlMs,
    head: Number(run.head) + 1,
    notes: Number(run.notes),
    reason: granted.reason,
    queue: queue.name,
    lagMs: Math.max(0, Number(run.waited_ms)),
    ...(run.run_id === null ? {} : { name: run.run_id }),
    ...(run.created === null ? {} : { created: run.created }),
    ...generationOf({ begins: Number(run.begins ?? 1) }),
  };
}

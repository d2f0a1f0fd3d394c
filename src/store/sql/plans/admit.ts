import { admissionOf, type KeyState, type QueueState, quantumOf } from "../../../model/admission.ts";
import type { Term } from "../../../model/lease.ts";
import { maxPriority, resumedClass } from "../../../model/queue.ts";
import { type Pace, rateRoom } from "../../../model/queue-turns.ts";
import type { LeaseRow } from "../../../model/rows.ts";
import type { FindRequest } from "../../contract/store.ts";
import { leaseRowOf, mayTake } from "../../lease-rules.ts";
import { type Plan, query, queryRow, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { takeTerm } from "./claim.ts";
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

interface WaitingRun {
  readonly lease: LeaseRow;
  readonly now: number;
  readonly class: number;
  readonly expires: boolean;
  readonly waitedMs: number;
  readonly name: string | null;
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

type PickedKey = KeyState & { readonly runs: readonly WaitingRun[] };

function* pickKeys(queue: AdmittingQueue, request: FindRequest, free: number): Plan<PickedKey[]> {
  const served = new Set(request.workflows);
  const rows = yield* queryRows("partition.ready", {
    queue: queue.id,
    maxClass: maxClassOf(queue),
    workflows: JSON.stringify(request.workflows),
    limit: free,
  });
  const weights = rows.reduce((sum, { weight }) => sum + Number(weight), 0);
  const keys: PickedKey[] = [];
  for (const { key, class: of, vtime, entered, running, weight, tat } of rows) {
    const limit = quantumOf(Number(weight), weights, rows.length, free);
    const runs = (yield* queryRows("queue.heads", { queue: queue.id, name: queue.name, key, limit })).map(waitingRunOf);
    const state = { class: Number(of), vtime: Number(vtime), entered: Number(entered), weight: Number(weight) };
    // A run that cannot be taken is waited for, never passed.
    const blocked = runs.findIndex(
      (run) => run.class !== state.class || !isFree(run, request) || !served.has(run.lease.workflow),
    );
    const available = blocked < 0 ? runs.length : blocked;
    keys.push({ key, ...state, running: Number(running), tat: Number(tat), available, runs });
  }
  return keys;
}

const waitingRunOf = (row: RowOf<"queue.heads">): WaitingRun => ({
  lease: leaseRowOf(row),
  now: Number(row.now),
  class: Number(row.class),
  expires: Boolean(row.expires),
  waitedMs: Math.max(0, Number(row.waited_ms)),
  name: row.name,
});

const isFree = ({ lease, now }: WaitingRun, { claimant }: FindRequest): boolean =>
  mayTake(lease, now, { claimant, expect: "free_or_expired", admits: true }) === undefined;

function* admitRun(run: WaitingRun, queue: AdmittingQueue, key: string, request: FindRequest): Plan<Term> {
  const { claimant, nonce } = request;
  const { lease, now, waitedMs, expires, name } = run;
  const { journal } = lease;
  const admitted = { queue: queue.name, key, waitedMs };
  const term = (yield* takeTerm(lease, now, { claimant, nonce, expect: "free_or_expired", admitted }))!;
  yield* query("slot.admit", { journal });
  if (expires) yield* query("timers.unexpire", { run: journal });
  return { ...term, lagMs: waitedMs, ...(name === null ? {} : { name }) };
}

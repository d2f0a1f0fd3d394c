import { admissionOf, type KeyState } from "../../model/admission.ts";
import { pinOf } from "../../model/build.ts";
import type { Term } from "../../model/lease.ts";
import type { TermReason } from "../../model/records.ts";
import type { FindRequest } from "../contract/store.ts";
import { type Plan, query, queryRow, queryRows } from "../sql/plan.ts";
import {
  type AdmittingQueue,
  admittedBacklogs,
  admittingQueueOf,
  maxClassOf,
  maxRounds,
  termOf,
  termStart,
} from "../sql/plans/admit.ts";
import { sweepKeys } from "../sql/plans/sweep.ts";
import type { RowOf } from "../sql/statements.gen.ts";
import { joinedTexts, nullableLiteral, numbersLiteral, textsLiteral } from "./arrays.ts";

type PickedRow = RowOf<"admit.pick">;
type PickedKey = KeyState & { readonly runs: readonly PickedRow[] };

/** admitPlan for PostgreSQL: the same decisions, in three statements. */
export function* admitManyPlan(request: FindRequest, name: string, room: number): Plan<Term[]> {
  const row = yield* queryRow("queue.claim", { tenant: request.tenant!, name });
  if (row === undefined) return [];
  let queue = admittingQueueOf(row);
  if (queue.keyPace !== undefined) yield* query("partition.due", { queue: queue.id });
  const terms: Term[] = [];
  for (let round = 0; round < maxRounds && terms.length < room; round++) {
    const rows = yield* queryRows("admit.pick", {
      queue: queue.id,
      room: room - terms.length,
      concurrency: queue.concurrency ?? null,
      maxClass: maxClassOf(queue),
      workflows: textsLiteral(admittedBacklogs(request)),
    });
    const keys = keysOf(rows);
    const free = Number(rows[0]?.free ?? 0);
    const admission = admissionOf(queue, keys, free);
    if (admission.keys.length === 0) break;
    const taken = admission.keys.flatMap(({ key, starts }) =>
      keys.find((one) => one.key === key)!.runs.slice(0, starts),
    );
    const expiring = taken.filter(({ expires }) => expires);
    for (const { journal } of expiring) yield* query("timers.unexpire", { run: Number(journal) });
    terms.push(...(yield* takeAll(queue, request, taken, admission)));
    const { tat, vnow, firstStarts } = admission;
    yield* sweepKeys({ ...queue, vnow }, firstStarts, admission.keys.at(-1)!.key);
    queue = { ...queue, tat, vnow, started: queue.started + firstStarts };
    if (admission.starts >= free) break; // no slot is left
  }
  return terms;
}

function keysOf(rows: readonly PickedRow[]): PickedKey[] {
  return [...Map.groupBy(rows, ({ key }) => key)].map(([key, runs]) => {
    const { key_class: of, vtime, entered, running, weight, tat } = runs[0]!;
    const blocked = runs.findIndex((run) => run.token === null || Number(run.class) !== Number(of));
    const available = blocked < 0 ? runs.length : blocked;
    const turn = { class: Number(of), vtime: Number(vtime), entered: Number(entered), weight: Number(weight) };
    return { key, ...turn, running: Number(running), tat: Number(tat), available, runs };
  });
}

function* takeAll(
  queue: AdmittingQueue,
  request: FindRequest,
  runs: readonly PickedRow[],
  admission: ReturnType<typeof admissionOf>,
): Plan<Term[]> {
  const { claimant, nonce } = request;
  const { owner, label, reactor, ttlMs } = claimant;
  const started = new Map<number, { readonly run: PickedRow; readonly reason: TermReason; readonly body: string }>();
  for (const run of runs) {
    started.set(Number(run.journal), { run, ...(yield* termStart(queue, run.key, request, run)) });
  }
  const { keys, tat, vnow, firstStarts } = admission;
  const rows = yield* queryRows("admit.take", {
    ...{ queue: queue.id, cap: queue.keyCap ?? null, tat, vnow, firstStarts },
    ...{ nonce, owner, label, reactor, ttlMs },
    journals: numbersLiteral([...started.keys()]),
    tokens: numbersLiteral(runs.map(({ token }) => BigInt(token!))),
    seqs: numbersLiteral(runs.map(({ head }) => Number(head) + 1)),
    reasons: textsLiteral([...started.values()].map(({ reason }) => reason)),
    bodies: joinedTexts([...started.values()].map(({ body }) => body)),
    keys: textsLiteral(keys.map(({ key }) => key)),
    starts: numbersLiteral(keys.map(({ starts }) => starts)),
    vtimes: numbersLiteral(keys.map(({ vtime }) => vtime)),
    tats: numbersLiteral(keys.map((key) => key.tat)),
    agains: nullableLiteral(keys.map(({ againAt }) => againAt ?? undefined)),
  });
  // All or none: the counters have been written for all of them.
  if (rows.length !== runs.length) throw new Error("the leases that were locked could not be taken");
  const pinned = runs.filter((run) => pinOf(run.build, run.workflow ?? "", request.build) !== undefined);
  if (pinned.length > 0) {
    const journals = numbersLiteral(pinned.map(({ journal }) => Number(journal)));
    yield* query("claim_many.pin", { journals, build: request.build!.build });
  }
  return rows.map((row) => {
    const { run, reason } = started.get(Number(row.journal))!;
    return termOf(
      queue,
      request,
      { ...run, notes: row.notes, begins: row.begins },
      { token: BigInt(row.token!), reason },
    );
  });
}

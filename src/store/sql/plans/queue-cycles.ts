import type { SlotState } from "../../../model/queue.ts";
import { type CycleStep, cycleOf, type WaitingRun } from "../../../model/queue-cycle.ts";
import type { QueuePosition } from "../../contract/store.ts";
import { type Plan, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { positionPlan } from "./queue-reads.ts";
import { findTarget } from "./target.ts";

/** A run that depends on more runs than this is not examined. */
const maxRuns = 1_000;

/** A DELAYED run waits for its time only. */
const examined: readonly SlotState[] = ["QUEUED", "HELD", "PARKED"];

/** Where a run is in its queue and why it does not start, cycles included. */
export function* explainedPlan(tenant: string, run: string): Plan<QueuePosition | undefined> {
  const position = yield* positionPlan(tenant, run);
  if (position === undefined || !examined.includes(position.state)) return position;
  const isFull = position.reasons.some(({ why }) => why === "queue_full" || why === "key_full");
  if (position.state === "QUEUED" && !isFull) return position;
  const journal = yield* findTarget(tenant, { run });
  const steps = journal === undefined ? undefined : yield* cyclePlan(tenant, journal);
  return steps === undefined ? position : { ...position, reasons: [{ why: "cycle", steps }, ...position.reasons] };
}

/** One statement reads all the runs: what several reads would piece together may never have existed. */
function* cyclePlan(tenant: string, journal: number): Plan<CycleStep[] | undefined> {
  const rows = yield* queryRows("slot.blockers", { tenant, journal, limit: maxRuns + 1 });
  if (rows.length > maxRuns) return undefined;
  const runs = rows.map(waitingOf).toSorted((a, b) => a.journal - b.journal);
  return cycleOf(runs, journal);
}

const numberOrNull = (value: unknown): number | null => (value === null ? null : Number(value));

const waitingOf = (row: RowOf<"slot.blockers">): WaitingRun => ({
  id: row.id,
  journal: Number(row.journal),
  parent: numberOrNull(row.parent),
  moves: Boolean(row.moves),
  ...(row.state !== null && {
    slot: {
      queue: row.queue ?? "",
      key: row.key ?? "",
      state: row.state,
      concurrency: numberOrNull(row.concurrency),
      keyConcurrency: numberOrNull(row.key_concurrency),
    },
  }),
});

import type { Change } from "../../../model/changes.ts";
import { TapeError } from "../../../model/errors.ts";
import { type Plan, type PlanContext, query, queryRow } from "../plan.ts";
import { admitRun } from "./quotas.ts";

/**
 * Inserts the row of a detached child: a root of its own, which a live run starts. It counts as a start of its tenant,
 * so a quota may refuse it. The row has a fresh id: the driver has found out whether it joins a run.
 */
export function* insertDetached(
  context: PlanContext,
  change: Extract<Change, { do: "run.create" }>,
  tenant: string,
): Plan<void> {
  if ((yield* queryRow("run.live", { journal: change.source!, tenant })) === undefined) {
    throw new TapeError("TAPE_ILLEGAL_TRANSITION", "a run that is ending starts no other run", { id: change.id });
  }
  if ((yield* query("run.root", { ...change, tenant, admitted: false })).count > 0) return;
  if ((yield* queryRow("tombstone.find", { tenant, id: change.id })) !== undefined) {
    throw new TapeError("TAPE_RUN_GONE", `run ${change.id} existed and was deleted`, { id: change.id });
  }
  const taken = (): TapeError => new TapeError("TAPE_RUN_CONFLICT", `run ${change.id} exists`, { id: change.id });
  if ((yield* queryRow("run.find", { tenant, id: change.id })) !== undefined) throw taken();
  yield* admitRun(tenant, context.lasting !== true);
  if ((yield* query("run.root", { ...change, tenant, admitted: true })).count === 0) throw taken();
}

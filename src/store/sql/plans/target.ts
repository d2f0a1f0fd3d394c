import type { LeaseTarget } from "../../../model/lease.ts";
import { targetNotFound } from "../../../model/not-found.ts";
import { encodeBody } from "../../../model/projection.ts";
import { type Plan, type PlanContext, query, queryRow } from "../plan.ts";

/** The journal that a target names, or undefined; the same for another tenant's as for an absent one. */
export function* findTarget(tenant: string, target: LeaseTarget): Plan<number | undefined> {
  if ("journal" in target) {
    const row = yield* queryRow("lease.read", { journal: target.journal });
    return row !== undefined && row.tenant === tenant ? target.journal : undefined;
  }
  const row =
    "run" in target
      ? yield* queryRow("run.find", { tenant, id: target.run })
      : yield* queryRow("name.find", { tenant, name: target.name });
  return row === undefined ? undefined : Number(row.journal);
}

/** As above, but a named lease is created by the first request for it. */
export function* openTarget(context: PlanContext, tenant: string, target: LeaseTarget): Plan<number> {
  const found = yield* findTarget(tenant, target);
  if (found !== undefined) return found;
  if (!("name" in target)) throw targetNotFound(target);
  const journal = context.allocate();
  const { name } = target;
  const { count } = yield* query("name.create", { tenant, name, journal });
  if (count === 0) {
    // Another transaction created it meanwhile; it is committed by now, because the insert waited for it.
    const other = yield* queryRow("name.find", { tenant, name });
    return Number(other?.journal);
  }
  const row = { journal, kind: "name", run: journal, tenant, source: null, workflow: "", token: 0n } as const;
  yield* query("lease.create", { ...row, nextReactor: null, maxStallMs: null, queue: null });
  yield* query("record.create", { journal, seq: 1, token: 0n, kind: "lease.named", body: encodeBody({ name }) });
  return journal;
}

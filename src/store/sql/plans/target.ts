import { TapeError } from "../../../model/errors.ts";
import type { Target } from "../../../model/lease.ts";
import { bodyOf } from "../../../model/project.ts";
import { ask, askRow, type Ground, type Plan } from "../plan.ts";

/** The journal a target names, or undefined; another tenant's answers like an absent one. */
export function* findTarget(tenant: string, target: Target): Plan<number | undefined> {
  if ("journal" in target) {
    const row = yield* askRow("lease.read", { journal: target.journal });
    return row !== undefined && row.tenant === tenant ? target.journal : undefined;
  }
  const row =
    "run" in target
      ? yield* askRow("run.find", { tenant, id: target.run })
      : yield* askRow("name.find", { tenant, name: target.name });
  return row === undefined ? undefined : Number(row.journal);
}

/** As above, but a named lease comes to be when it is first asked for. */
export function* openTarget(ground: Ground, tenant: string, target: Target): Plan<number> {
  const found = yield* findTarget(tenant, target);
  if (found !== undefined) return found;
  if (!("name" in target)) throw absentTarget(target);
  const journal = ground.allocate();
  const { name } = target;
  const { count } = yield* ask("name.create", { tenant, name, journal });
  if (count === 0) {
    // Somebody else's transaction made it meanwhile; it is committed by now, because the insert waited for it.
    const other = yield* askRow("name.find", { tenant, name });
    return Number(other?.journal);
  }
  const row = { journal, kind: "name", run: journal, tenant, source: null, workflow: "", token: 0n, wants: null };
  yield* ask("lease.create", row);
  yield* ask("record.create", { journal, seq: 1, token: 0n, kind: "lease.named", body: bodyOf({ name }) });
  return journal;
}

export function absentTarget(target: Target): TapeError {
  if ("run" in target) return new TapeError("TAPE_RUN_UNKNOWN", `there is no run ${target.run}`, { run: target.run });
  const name = "name" in target ? target.name : target.journal;
  return new TapeError("TAPE_LEASE_UNKNOWN", `there is no lease ${name}`, { name });
}

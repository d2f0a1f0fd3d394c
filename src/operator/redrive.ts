import { TapeError } from "../model/errors.ts";
import { notFound } from "../model/not-found.ts";
import type { AuditInfo, Store } from "../store/contract/store.ts";
import { type OperatorDeps, operatorAction, underManualLease } from "./manual-lease.ts";

const phases = ["LIVE", "ENDING", "COMPENSATING"] as const;

/**
 * Resumes a STUCK run where it stopped, after an operator has fixed the cause. The operator's name and reason are
 * recorded under a new term, which fences any earlier holder.
 */
export async function redrive(deps: OperatorDeps, run: string, audit: AuditInfo): Promise<void> {
  const { store, tenant } = deps;
  await stuckRun(store, tenant, run);
  await underManualLease(deps, { run }, audit, { reactor: "recovery", condition: "any" }, async () => {
    const { stuckFrom } = await stuckRun(store, tenant, run);
    const to = phases.find((phase) => phase === stuckFrom) ?? "LIVE";
    return [operatorAction(audit, "redrive"), { kind: "run.unstuck", data: { to } }];
  });
}

async function stuckRun(store: Store, tenant: string, id: string): Promise<{ readonly stuckFrom: string | null }> {
  const run = await store.read.run(tenant, id);
  if (run === undefined) throw notFound("run", id);
  if (run.status === "STUCK") return run;
  throw new TapeError("TAPE_ILLEGAL_TRANSITION", `run ${id} is ${run.status}, not STUCK`, {
    run: id,
    status: run.status,
  });
}

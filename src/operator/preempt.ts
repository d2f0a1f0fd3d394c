import { targetNotFound } from "../model/not-found.ts";
import type { AuditInfo } from "../store/contract/store.ts";
import { type ManualTarget, type OperatorDeps, operatorAction, underManualLease } from "./manual-lease.ts";

/** A run's lease or a named one. */
export type PreemptTarget = ManualTarget;

export interface PreemptRequest extends AuditInfo {
  /** true: only from a holder whose time has run out; else TAPE_LEASE_HELD. */
  readonly onlyStale?: boolean;
}

/**
 * An operator takes a lease away and gives it back at once: whoever held it is fenced at that instant, and a standby, or
 * for a run the recovery reactor, has it next. Journal, ledger and audit keep who and why.
 */
export async function preempt(deps: OperatorDeps, target: PreemptTarget, act: PreemptRequest): Promise<void> {
  if ((await deps.store.read.lease(deps.tenant, target)) === undefined) throw targetNotFound(target);
  const { onlyStale = false } = act;
  const reactor = "name" in target ? "operator" : "recovery";
  const condition = onlyStale ? "expired" : "any";
  const action = onlyStale ? "lease.release" : "lease.takeover";
  await underManualLease(deps, target, act, { reactor, condition, end: "manual" }, async () => [
    operatorAction(act, action),
  ]);
}

import { targetNotFound } from "../model/not-found.ts";
import type { AuditInfo } from "../store/contract/store.ts";
import { type ManualTarget, type OperatorDeps, operatorAction, underManualLease } from "./manual-lease.ts";

/** A run's lease or a named one. */
export type PreemptTarget = ManualTarget;

export interface PreemptRequest extends AuditInfo {
  /** true: only if the lease has expired; otherwise TAPE_LEASE_HELD. */
  readonly onlyStale?: boolean;
}

/**
 * Takes a lease over and releases it at once. The holder is fenced; a standby, or for a run the recovery reactor,
 * acquires it next. Journal, term history and audit have the operator's name and reason.
 */
export async function preempt(deps: OperatorDeps, target: PreemptTarget, request: PreemptRequest): Promise<void> {
  if ((await deps.store.read.lease(deps.tenant, target)) === undefined) throw targetNotFound(target);
  const { onlyStale = false } = request;
  const reactor = "name" in target ? "operator" : "recovery";
  const condition = onlyStale ? "expired" : "any";
  const action = onlyStale ? "lease.release" : "lease.takeover";
  await underManualLease(deps, target, request, { reactor, condition, end: "manual" }, async () => [
    operatorAction(request, action),
  ]);
}

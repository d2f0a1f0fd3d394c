import type { Clock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import type { Random } from "../base/random.ts";
import { readClocks } from "../lease/belief.ts";
import type { LeaseKeeper } from "../lease/keeper.ts";
import type { Lease } from "../lease/lease.ts";
import { isTapeError } from "../model/errors.ts";
import type { AcquireCondition, LeaseTarget, Term } from "../model/lease.ts";
import type { NewRecord, TermEnd } from "../model/records.ts";
import type { AuditInfo, Store } from "../store/contract/store.ts";

export interface OperatorDeps {
  readonly store: Store;
  readonly keeper: LeaseKeeper;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: Random;
}

/** A run's lease or a named one. An item's lease is taken over by resolving its effect. */
export type ManualTarget = Exclude<LeaseTarget, { readonly journal: number }>;

export interface ManualTerm {
  readonly reactor: string;
  /** Which state of the lease is required; otherwise the call is rejected. */
  readonly condition: AcquireCondition;
}

/** Acquires the lease in the operator's name. The holder is fenced at once; the term history has name and reason. */
export async function acquireManually(
  deps: OperatorDeps,
  target: LeaseTarget,
  { by, reason }: AuditInfo,
  { reactor, condition }: ManualTerm,
): Promise<{ readonly lease: Lease; readonly term: Term }> {
  const { store, keeper, tenant, clock, random } = deps;
  const sent = readClocks(clock);
  const acquired = await store.claim.acquire(tenant, {
    target,
    claimant: keeper.claimant(reactor),
    nonce: random.bits63(),
    expect: condition,
    reason: "manual",
    by,
    auditReason: reason,
  });
  if (!acquired.ok) throw acquired.error;
  const { term } = acquired;
  return { lease: keeper.adopt(nameOf(target), term, sent, { reactor: "operator" }), term };
}

/**
 * Performs an operator action on a run or a named lease: acquires the lease, then writes and releases in one append.
 * `records` is called under the lease, when no other process can change what it reads. If it throws, the lease is
 * released without a change, and its error is thrown.
 */
export async function underManualLease(
  deps: OperatorDeps,
  target: ManualTarget,
  audit: AuditInfo,
  { end = "released", ...manual }: ManualTerm & { readonly end?: TermEnd },
  records: (term: Term) => Promise<readonly NewRecord[]>,
): Promise<void> {
  const { lease, term } = await acquireManually(deps, target, audit, manual);
  const next = "run" in target ? { nextReactor: "recovery" } : {};
  const release = (written: readonly NewRecord[]): Promise<void> =>
    appendLast(deps, target, lease, term, (notesTaken) => [
      ...written,
      { kind: "term.ended", data: { reason: end, notesTaken, ...next, term: lease.stats() } },
    ]);
  try {
    const written = await records(term).catch(async (refusal: unknown) => {
      await release([]).catch(() => {}); // otherwise the lease expires
      throw refusal;
    });
    await release(written);
  } finally {
    lease.end("released");
  }
}

/**
 * Writes the last records of a term. The release names the last note: if one arrives meanwhile, it is retried. The store's
 * fence decides whether the write counts, so a jump of this machine's clock does not refuse it; the lease's own deadline
 * only bounds the retries.
 */
export async function appendLast(
  { store, tenant }: OperatorDeps,
  target: ManualTarget,
  lease: Lease,
  { head, notes, begins }: Term,
  records: (taken: number) => readonly NewRecord[],
): Promise<void> {
  for (let taken = notes; ; lease.assert()) {
    try {
      const generation = begins === undefined ? {} : { begins };
      await store.fenced.append(lease.fence, { after: head, records: [...records(taken)], ...generation });
      return;
    } catch (error) {
      // A named lease has no inbox.
      if ("name" in target || !isTapeError(error, "TAPE_NOTES_PENDING")) throw error;
      taken = (await store.read.run(tenant, target.run))?.notes ?? taken;
    }
  }
}

/** The record of an operator action, for the journal and the audit. */
export function operatorAction({ by, reason, via }: AuditInfo, action: string, detail?: unknown): NewRecord {
  const data = { by, action, reason, ...defined({ detail, via }) };
  return { kind: "operator.action", data };
}

function nameOf(target: LeaseTarget): string {
  if ("name" in target) return target.name;
  return "run" in target ? target.run : `resolve ${target.journal}`;
}

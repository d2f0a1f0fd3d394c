import { readClocks } from "../lease/belief.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { LeaseTarget } from "../model/lease.ts";
import type { Credential, NewRecord } from "../model/records.ts";
import type { OperatorDeps } from "./redrive.ts";

/** Whose lease it is: a run's or a named one. An item's is taken over by resolving its doubt. */
export type PreemptTarget = Exclude<LeaseTarget, { readonly journal: number }>;

export interface PreemptRequest {
  readonly by: string;
  readonly reason: string;
  readonly via?: Credential;
  /** true: only from a holder whose time has run out; else TAPE_LEASE_HELD. */
  readonly onlyStale?: boolean;
}

/**
 * An operator takes a lease away and gives it back at once: whoever held it is fenced at that instant, and a standby, or
 * for a run the recovery reactor, has it next. Journal, ledger and audit keep who and why.
 */
export async function preempt(deps: OperatorDeps, target: PreemptTarget, act: PreemptRequest): Promise<void> {
  const { store, keeper, tenant, clock, random } = deps;
  const { by, reason, via, onlyStale = false } = act;
  const named = "name" in target;
  if ((await store.read.lease(tenant, target)) === undefined) throw absent(target);
  const sent = readClocks(clock);
  const answer = await store.claim.acquire(tenant, {
    target,
    claimant: { ...keeper.identity, reactor: named ? "operator" : "recovery", ttlMs: Math.round(keeper.timings.ttlMs) },
    nonce: random.bits63(),
    expect: onlyStale ? "expired" : "any",
    reason: "manual",
    by,
    why: reason,
  });
  if (!answer.ok) throw answer.error;
  const lease = keeper.adopt(named ? target.name : target.run, answer.term, sent);
  const action = onlyStale ? "lease.release" : "lease.takeover";
  let taken = answer.term.notes;
  try {
    for (;;) {
      const records: NewRecord[] = [
        { kind: "operator.action", data: { who: by, action, reason, ...(via && { via }) } },
        {
          kind: "term.ended",
          data: { end: "manual", taken, ...(named ? {} : { nextReactor: "recovery" }), term: lease.stats() },
        },
      ];
      lease.assert();
      try {
        await store.fenced.append(lease.fence, { after: answer.term.head, records });
        return;
      } catch (error) {
        if (named || !isTapeError(error, "TAPE_NOTES_PENDING")) throw error;
        taken = (await store.read.run(tenant, target.run))?.notes ?? taken;
      }
    }
  } finally {
    lease.end("given back");
  }
}

function absent(target: PreemptTarget): TapeError {
  return "name" in target
    ? new TapeError("TAPE_LEASE_NOT_FOUND", `no lease is called ${target.name}`, { name: target.name })
    : new TapeError("TAPE_RUN_NOT_FOUND", `there is no run ${target.run}`, { run: target.run });
}

import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { type ClockReading, readClocks } from "../lease/belief.ts";
import type { LeaseKeeper } from "../lease/keeper.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { Credential, NewRecord } from "../model/records.ts";
import type { Store } from "../store/contract/store.ts";

export interface OperatorDeps {
  readonly store: Store;
  readonly keeper: LeaseKeeper;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: Random;
}

const phases = ["LIVE", "ENDING", "COMPENSATING"] as const;

/**
 * Lets a stuck run go on from where it was, after a person has seen to what stopped it. The person's name and reason are
 * recorded under a new term, which fences whoever may still hold the run.
 */
export async function redrive(
  deps: OperatorDeps,
  runId: string,
  person: { readonly by: string; readonly reason: string; readonly via?: Credential },
): Promise<void> {
  const { store, keeper, tenant, clock, random } = deps;
  const sent: ClockReading = readClocks(clock);
  await stuckRun(store, tenant, runId);
  const claimant = { ...keeper.identity, reactor: "recovery", ttlMs: Math.round(keeper.timings.ttlMs) };
  const { by, reason, via } = person;
  const asked = { expect: "any", reason: "manual", by, why: reason } as const;
  const answer = await store.claim.acquire(tenant, {
    target: { run: runId },
    claimant,
    nonce: random.bits63(),
    ...asked,
  });
  if (!answer.ok) throw answer.error;
  const lease = keeper.adopt(runId, answer.term, sent);
  try {
    const { stuckFrom } = await stuckRun(store, tenant, runId);
    const to = phases.find((phase) => phase === stuckFrom) ?? "LIVE";
    const { head } = answer.term;
    let taken = answer.term.notes;
    for (;;) {
      const records: NewRecord[] = [
        { kind: "operator.action", data: { who: by, action: "redrive", reason, ...(via && { via }) } },
        { kind: "run.unstuck", data: { to } },
        { kind: "term.ended", data: { end: "released", taken, nextReactor: "recovery", term: lease.stats() } },
      ];
      lease.assert();
      try {
        await store.fenced.append(lease.fence, { after: head, records });
        return;
      } catch (error) {
        if (!isTapeError(error, "TAPE_NOTES_PENDING")) throw error;
        taken = (await store.read.run(tenant, runId))?.notes ?? taken;
      }
    }
  } finally {
    lease.end("given back");
  }
}

async function stuckRun(store: Store, tenant: string, id: string): Promise<{ readonly stuckFrom: string | null }> {
  const run = await store.read.run(tenant, id);
  if (run === undefined) throw new TapeError("TAPE_RUN_NOT_FOUND", `there is no run ${id}`, { run: id });
  if (run.status === "STUCK") return run;
  throw new TapeError("TAPE_ILLEGAL_TRANSITION", `run ${id} is ${run.status}, not STUCK`, {
    run: id,
    status: run.status,
  });
}

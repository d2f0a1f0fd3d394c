import { asStored } from "../engine/replay/stored-value.ts";
import { readClocks } from "../lease/belief.ts";
import { TapeError } from "../model/errors.ts";
import type { NewRecord, RecordData } from "../model/records.ts";
import type { OperatorReason, Store } from "../store/contract/store.ts";
import { appendLast, type OperatorDeps } from "./manual-lease.ts";

/**
 * Requests that a run stops. A run that never started has nothing to clean up and needs no worker: it ends here, under
 * its lease, even if no process has its workflow. If this process crashes in between, another cancel ends the run once
 * the lease has expired.
 */
export async function cancelRun(deps: OperatorDeps, run: string, reason: OperatorReason): Promise<{ n: number }> {
  const noted = await deps.store.intake.cancel(deps.tenant, run, reason);
  await endUnstarted(deps, run);
  return noted;
}

/** Ends a run that never started. false: it has started, is driven, or has ended; its driver reads the cancellation. */
export async function endUnstarted(deps: OperatorDeps, run: string): Promise<boolean> {
  const { store, keeper, tenant, clock, random } = deps;
  const target = { run };
  const view = await store.read.run(tenant, run);
  const status = view?.status;
  const mayBeUnstarted = status === "RUNNABLE" || status === "RUNNING";
  if (!mayBeUnstarted || (await unstartedRun(store, tenant, run)) === undefined) return false;
  const sent = readClocks(clock);
  const acquired = await store.claim.acquire(tenant, {
    target,
    claimant: keeper.claimant("recovery"),
    nonce: random.bits63(),
    expect: "free_or_expired",
    // No code is executed in this term, so that the run's build does not matter: its processes may be gone.
    ...(view?.lease.build !== undefined && { reason: "cancellation" as const }),
  });
  if (!acquired.ok) return false;
  const { term } = acquired;
  const lease = keeper.adopt(run, term, sent, { reactor: "operator" });
  try {
    // Checked again under the lease: no process can start it now.
    const created = await unstartedRun(store, tenant, run);
    const last = created === undefined ? released : (taken: number) => ended(created, taken);
    await appendLast(deps, target, lease, term, (taken) => [last(taken)]);
    return created !== undefined;
  } finally {
    lease.end("released");
  }
}

/** More terms than this without another record are not failed cancellations. */
const maxTerms = 20;

/** The creation of a run that never started: without a first holder, and with no record since but terms. */
async function unstartedRun(store: Store, tenant: string, run: string): Promise<RecordData<"run.created"> | undefined> {
  const [first, ...since] = await store.read.journal(tenant, { run }, { limit: maxTerms });
  if (first?.kind !== "run.created" || first.data.holder !== undefined || since.length + 1 === maxTerms)
    return undefined;
  return since.every(({ kind }) => kind === "term.started" || kind === "term.ended") ? first.data : undefined;
}

const released = (notesTaken: number): NewRecord => ({
  kind: "term.ended",
  data: { reason: "released", notesTaken, nextReactor: "recovery" },
});

function ended({ id, parent }: RecordData<"run.created">, notesTaken: number): NewRecord {
  const outcome = asStored(new TapeError("TAPE_CANCELLED", "the run was cancelled before it began", { run: id }));
  const notified = parent === undefined ? {} : { parent: { ...parent, id } };
  return { kind: "run.ended", data: { status: "CANCELLED", outcome, notesTaken, ...notified } };
}

import { asStored } from "../engine/replay/stored-value.ts";
import { readClocks } from "../lease/belief.ts";
import { TapeError } from "../model/errors.ts";
import type { NewRecord, RecordData } from "../model/records.ts";
import type { OperatorReason, Store } from "../store/contract/store.ts";
import { appendLast, type OperatorDeps } from "./manual-lease.ts";

/**
 * Asks a run to stop. One that never began has nothing to clean up and needs no worker: it ends here, under its lease,
 * also where no process has its workflow. Who dies in between leaves the lease behind: once that has expired, whoever
 * cancels again ends the run.
 */
export async function cancelRun(deps: OperatorDeps, run: string, reason: OperatorReason): Promise<{ n: number }> {
  const noted = await deps.store.intake.cancel(deps.tenant, run, reason);
  await endUnbegun(deps, run);
  return noted;
}

/** false: it has begun, is being driven, or is over; then whoever drives it hears of the cancellation. */
export async function endUnbegun(deps: OperatorDeps, run: string): Promise<boolean> {
  const { store, keeper, tenant, clock, random } = deps;
  const target = { run };
  const status = (await store.read.run(tenant, run))?.status;
  const mayBe = status === "RUNNABLE" || status === "RUNNING";
  if (!mayBe || (await beginning(store, tenant, run)) === undefined) return false;
  const sent = readClocks(clock);
  const answer = await store.claim.acquire(tenant, {
    target,
    claimant: keeper.claimant("recovery"),
    nonce: random.bits63(),
    expect: "free_or_expired",
  });
  if (!answer.ok) return false;
  const { term } = answer;
  const lease = keeper.adopt(run, term, sent);
  try {
    // Again under the lease: nobody can begin it now.
    const created = await beginning(store, tenant, run);
    const last = created === undefined ? givenBack : (taken: number) => ended(created, taken);
    await appendLast(deps, target, lease, term, (taken) => [last(taken)]);
    return created !== undefined;
  } finally {
    lease.end("released");
  }
}

/** More terms than these without a single record are no cancellations that failed. */
const maxTerms = 20;

/** How it was created, if nobody was to drive it from then on and nothing has been written since but terms. */
async function beginning(store: Store, tenant: string, run: string): Promise<RecordData<"run.created"> | undefined> {
  const [first, ...since] = await store.read.journal(tenant, { run }, { limit: maxTerms });
  if (first?.kind !== "run.created" || first.data.holder !== undefined || since.length + 1 === maxTerms)
    return undefined;
  return since.every(({ kind }) => kind === "term.started" || kind === "term.ended") ? first.data : undefined;
}

const givenBack = (notesTaken: number): NewRecord => ({
  kind: "term.ended",
  data: { reason: "released", notesTaken, nextReactor: "recovery" },
});

function ended({ id, parent }: RecordData<"run.created">, notesTaken: number): NewRecord {
  const outcome = asStored(new TapeError("TAPE_CANCELLED", "the run was cancelled before it began", { run: id }));
  const told = parent === undefined ? {} : { parent: { ...parent, id } };
  return { kind: "run.ended", data: { status: "CANCELLED", outcome, notesTaken, ...told } };
}

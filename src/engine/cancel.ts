import { momentOf } from "../lease/belief.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { NewRecord, RecordData } from "../model/records.ts";
import type { Store } from "../store/contract.ts";
import type { RedriveGround } from "./redrive.ts";
import { asStored } from "./same.ts";

export interface Cancellation {
  readonly reason: string;
  readonly by?: string;
}

/**
 * Asks a run to stop. One that never began has nothing to clean up and needs no worker: it ends here, under its lease,
 * also where no process has its workflow.
 */
export async function cancelRun(ground: RedriveGround, run: string, asked: Cancellation): Promise<{ n: number }> {
  const noted = await ground.store.intake.cancel(ground.tenant, run, asked);
  await endUnbegun(ground, run);
  return noted;
}

/** false: it has begun, is being driven, or is over; then whoever drives it hears of the cancellation. */
export async function endUnbegun(ground: RedriveGround, run: string): Promise<boolean> {
  const { store, keeper, tenant, clock, random } = ground;
  const target = { run };
  const view = await store.read.run(tenant, run);
  if (view?.status !== "RUNNABLE" || (await beginning(store, tenant, run, 1)) === undefined) return false;
  const sent = momentOf(clock);
  const claimant = { ...keeper.identity, reactor: "recovery", ttlMs: Math.round(keeper.timings.ttlMs) };
  const answer = await store.claim.acquire(tenant, { target, claimant, nonce: random.bits63(), expect: "free" });
  if (!answer.ok) return false;
  const { term } = answer;
  const lease = keeper.adopt(run, term, sent);
  try {
    // Again under the lease, whose own record is the second: nobody can begin it now.
    const created = await beginning(store, tenant, run, 2);
    for (let taken = term.notes; ; ) {
      const end = created === undefined ? givenBack(taken) : ended(created, taken);
      lease.assert();
      try {
        await store.fenced.append(lease.fence, { after: term.head, records: [end] });
        return created !== undefined;
      } catch (error) {
        if (!isTapeError(error, "TAPE_NOTES_WAIT")) throw error;
        taken = (await store.read.run(tenant, run))?.notes ?? taken;
      }
    }
  } finally {
    lease.lost("given back");
  }
}

/** How it was created, if nothing has been written since but what is expected. */
async function beginning(
  store: Store,
  tenant: string,
  run: string,
  records: number,
): Promise<RecordData<"run.created"> | undefined> {
  const found = await store.read.journal(tenant, { run }, { limit: records + 1 });
  const [first] = found;
  return found.length === records && first?.kind === "run.created" && first.data.holder === undefined
    ? first.data
    : undefined;
}

const givenBack = (taken: number): NewRecord => ({
  kind: "term.ended",
  data: { end: "released", taken, wants: "recovery" },
});

function ended({ id, parent }: RecordData<"run.created">, taken: number): NewRecord {
  const outcome = asStored(new TapeError("TAPE_CANCELLED", "the run was cancelled before it began", { run: id }));
  const told = parent === undefined ? {} : { parent: { ...parent, id } };
  return { kind: "run.ended", data: { status: "CANCELLED", outcome, taken, ...told } };
}

import type { ReactorDeps } from "../engine/item/deps.ts";
import { readClocks } from "../lease/belief.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { Credential, NewRecord } from "../model/records.ts";

export interface CompensateRequest {
  readonly run: string;
  readonly pos: number;
  readonly name: string | null;
  readonly by: string;
  readonly reason: string;
  readonly via?: Credential;
}

/**
 * A person has a confirmed act undone while its run lives: the obligation that was armed with it is due. Only the run
 * makes its obligations due, so the run's lease is taken over for it, in the person's name; whoever drove the run is
 * fenced, and it goes on at once. A run that would end well waits until what is due has been undone.
 */
export async function compensateNow(deps: ReactorDeps, undoing: CompensateRequest): Promise<void> {
  const { store, keeper, tenant, clock, random } = deps;
  const { run, pos, by, reason, via } = undoing;
  await assertArmed(deps, undoing);
  const sent = readClocks(clock);
  const answer = await store.claim.acquire(tenant, {
    target: { run },
    claimant: { ...keeper.identity, reactor: "recovery", ttlMs: Math.round(keeper.timings.ttlMs) },
    nonce: random.bits63(),
    expect: "any",
    reason: "manual",
    by,
    why: reason,
  });
  if (!answer.ok) throw answer.error;
  const lease = keeper.adopt(run, answer.term, sent);
  const acted: NewRecord = {
    kind: "operator.action",
    data: { who: by, action: "resolve", reason, detail: { as: "compensate", pos }, ...(via && { via }) },
  };
  let taken = answer.term.notes;
  try {
    // It may have been decided meanwhile: then the run is given back as it was found, and whoever asked is told why.
    const refused = await assertArmed(deps, undoing).catch((error: unknown) => error);
    const due: NewRecord = { kind: "obligation.due", data: { pos, sub: 1, why: reason } };
    for (;;) {
      const ended: NewRecord = {
        kind: "term.ended",
        data: { end: "released", taken, nextReactor: "recovery", term: lease.stats() },
      };
      lease.assert();
      try {
        const records = refused === undefined ? [acted, due, ended] : [ended];
        await store.fenced.append(lease.fence, { after: answer.term.head, records });
        break;
      } catch (error) {
        if (!isTapeError(error, "TAPE_NOTES_PENDING")) throw error;
        taken = (await store.read.run(tenant, run))?.notes ?? taken;
      }
    }
    if (refused !== undefined) throw refused;
  } finally {
    lease.end("given back");
  }
}

async function assertArmed({ store, tenant }: ReactorDeps, undoing: CompensateRequest): Promise<void> {
  const { run, pos, name } = undoing;
  const [view, owed] = await Promise.all([
    store.read.run(tenant, run),
    store.read.effects(tenant, { run, role: "compensation", from: pos }),
  ]);
  const obligation = owed.find((effect) => effect.pos === pos && effect.sub === 1);
  if (obligation === undefined) throw noCompensateError(undoing, name);
  const { status } = obligation;
  const about = { run, pos, status };
  if (view === undefined || view.endedAt !== null) {
    const message = `run ${run} has ended: ${name} is no longer undone from here; start a run that does it`;
    throw new TapeError("TAPE_RUN_ENDED", message, about);
  }
  if (status !== "ARMED") {
    throw new TapeError("TAPE_ILLEGAL_TRANSITION", `undoing ${name} of run ${run} is ${status} already`, about);
  }
  if (view.cause === "failed" || view.cause === "cancelled") {
    const message = `run ${run} ends as ${view.cause}: all that it did is undone, newest first`;
    throw new TapeError("TAPE_ILLEGAL_TRANSITION", message, about);
  }
}

export function noCompensateError(
  { run, pos }: Pick<CompensateRequest, "run" | "pos">,
  name: string | null,
): TapeError {
  const message = `${name} of run ${run} has no compensate: nobody knows how to undo it`;
  return new TapeError("TAPE_NO_COMPENSATE", message, { run, pos });
}

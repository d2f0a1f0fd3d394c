import { TapeError } from "../model/errors.ts";
import type { NewRecord } from "../model/records.ts";
import type { AuditInfo } from "../store/contract/store.ts";
import { type OperatorDeps, operatorAction, underManualLease } from "./manual-lease.ts";

export interface CompensateRequest extends AuditInfo {
  readonly run: string;
  readonly pos: number;
  readonly name: string | null;
}

/**
 * A person has a confirmed act undone while its run lives: the obligation that was armed with it is due. Only the run
 * makes its obligations due, so the run's lease is taken over for it, in the person's name; whoever drove the run is
 * fenced, and it goes on at once. A run that would end well waits until what is due has been undone.
 */
export async function compensateNow(deps: OperatorDeps, undoing: CompensateRequest): Promise<void> {
  const { run, pos, reason } = undoing;
  await assertArmed(deps, undoing);
  await underManualLease(deps, { run }, undoing, { reactor: "recovery", condition: "any" }, async () => {
    await assertArmed(deps, undoing); // it may have been decided meanwhile
    const due: NewRecord = { kind: "obligation.due", data: { pos, sub: 1, reason: reason } };
    return [operatorAction(undoing, "resolve", { as: "compensate", pos }), due];
  });
}

async function assertArmed({ store, tenant }: OperatorDeps, undoing: CompensateRequest): Promise<void> {
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
  const message = `${name} of run ${run} has no compensate`;
  return new TapeError("TAPE_NO_COMPENSATE", message, { run, pos });
}

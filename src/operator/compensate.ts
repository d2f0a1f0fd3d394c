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
 * Makes the armed obligation of a confirmed effect due, while its run has not ended. Only the run's journal can do so,
 * so this takes over the run's lease in the operator's name. The previous holder is fenced, and the run resumes at
 * once. A run that would complete waits until the compensation is done.
 */
export async function compensateNow(deps: OperatorDeps, request: CompensateRequest): Promise<void> {
  const { run, pos, reason } = request;
  await assertArmed(deps, request);
  await underManualLease(deps, { run }, request, { reactor: "recovery", condition: "any" }, async () => {
    await assertArmed(deps, request); // the outcome may have been decided meanwhile
    const due: NewRecord = { kind: "obligation.due", data: { pos, sub: 1, reason } };
    return [operatorAction(request, "resolve", { as: "compensate", pos }), due];
  });
}

async function assertArmed({ store, tenant }: OperatorDeps, request: CompensateRequest): Promise<void> {
  const { run, pos, name } = request;
  const [view, owed] = await Promise.all([
    store.read.run(tenant, run),
    store.read.effects(tenant, { run, role: "compensation", from: pos }),
  ]);
  const obligation = owed.find((effect) => effect.pos === pos && effect.sub === 1);
  if (obligation === undefined) throw noCompensateError(request, name);
  const { status } = obligation;
  const about = { run, pos, status };
  if (view === undefined || view.endedAt !== null) {
    const message = `run ${run} has ended: ${name} can no longer be compensated from here; start a run that does it`;
    throw new TapeError("TAPE_RUN_ENDED", message, about);
  }
  if (status !== "ARMED") {
    throw new TapeError(
      "TAPE_ILLEGAL_TRANSITION",
      `the compensation of ${name} of run ${run} is already ${status}`,
      about,
    );
  }
  if (view.cause === "failed" || view.cause === "cancelled") {
    const message = `run ${run} ends as ${view.cause}: all its effects are compensated, newest first`;
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

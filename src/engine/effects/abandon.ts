import { type AttemptHistory, unknownAfterCrash } from "../../model/attempt.ts";
import type { NewRecord } from "../../model/records.ts";
import type { EffectCall } from "../../sdk/effect.ts";
import type { DriveHandle } from "../core/handle.ts";
import { resultIn } from "./evidence.ts";
import { confirm } from "./inline.ts";
import { awaitOutcome, type EffectOperation, isInline, withdrawPending, writeOutcome } from "./outcome.ts";

/**
 * An effect of an earlier term whose scope has ended. It is not sent again. What was sent gets its outcome: from
 * evidence, from the item that decides it, or from an observation, because a crash interrupted the attempt.
 */
export function abandonEffect(drive: DriveHandle, call: EffectCall<unknown>, handle: EffectOperation): void {
  const known = drive.history.effects.get(handle.pos);
  if (known === undefined) return;
  const { status, token, failures } = known;
  if (
    status === "UNKNOWN" ||
    status === "STUCK" ||
    (!isInline(call) && (status === "PENDING" || status === "DISPATCHED"))
  ) {
    awaitOutcome(drive, call, handle);
    handle.withdraw = undefined;
    return;
  }
  const { pos } = handle;
  if (status === "PENDING") {
    const history: AttemptHistory = { failures, uncertain: known.uncertain };
    drive.track(withdrawPending(drive, call, handle, history));
    return;
  }
  if (status !== "DISPATCHED") return;
  const evidence = drive.waits.evidenceFor(pos, token);
  if (evidence?.happened === true) {
    drive.track(confirm(drive, call, handle, resultIn(evidence)));
    return;
  }
  const record: NewRecord = { kind: "effect.settled", data: { pos, ...unknownAfterCrash, failures } };
  drive.track(writeOutcome(drive, [record], () => awaitOutcome(drive, call, handle)));
}

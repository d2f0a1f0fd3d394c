import { type AttemptHistory, unknownAtEnd } from "../../model/attempt.ts";
import { isTapeError, type TapeError } from "../../model/errors.ts";
import type { JournalRecord, NewRecord } from "../../model/records.ts";
import type { EffectResult } from "../../sdk/context.ts";
import type { EffectCall } from "../../sdk/effect.ts";
import type { DriveHandle } from "../core/handle.ts";
import type { OperationHandle } from "../core/operation.ts";

/** How the outcome of an effect is written and awaited, and how one that was not sent is withdrawn. */

export type EffectOperation = OperationHandle<EffectResult<unknown>>;

export const isInline = ({ effect }: EffectCall<unknown>): boolean =>
  effect.dispatch === "inline" && effect.body !== undefined;

/** The result of an effect, from its record. */
export function effectResultOf<R>(record: JournalRecord | NewRecord): EffectResult<R> {
  const data = record.data as { to?: string; status?: string; reason?: string; value?: unknown; error?: unknown };
  if (data.status === "REFUSED") throw data.error;
  if ((data.to ?? data.status) === "CONFIRMED") {
    if (data.error !== undefined) throw data.error; // it happened, but its result could not be stored
    return { status: "confirmed", value: data.value as R };
  }
  return { status: "failed", reason: data.reason ?? "failed", error: data.error };
}

export function writeOutcome(
  drive: DriveHandle,
  records: readonly NewRecord[],
  deliver: () => void,
  refused: (error: TapeError) => void | Promise<void> = (error) => drive.fail(error),
): Promise<void> {
  return new Promise((resolve) => {
    drive.journal.enqueue(
      records,
      () => {
        deliver();
        resolve();
        drive.parkIfIdle();
      },
      (error) => resolve(refused(error)),
    );
  });
}

/** The item journal decides; the run parks until the note arrives. */
export function awaitOutcome(drive: DriveHandle, call: EffectCall<unknown>, handle: EffectOperation): void {
  const { pos } = handle;
  if (!isInline(call)) handle.withdraw = () => withdrawItem(drive, handle);
  let received: NewRecord | undefined;
  drive.waits.add({
    pos,
    description: `effect ${call.effect.name}`,
    effect: call.effect.name,
    match: (note) => {
      if (note.kind !== "effect.outcome" || note.data.pos !== pos || note.data.sub !== 0) return undefined;
      const { status, reason, value, error } = note.data;
      if (status !== "CONFIRMED" && status !== "FAILED") return undefined;
      received = { kind: "effect.received", data: { pos, status, reason, value, error } };
      return received;
    },
    written: () => {
      try {
        handle.resolve(effectResultOf(received!));
      } catch (error) {
        handle.reject(error);
      }
    },
  });
  drive.matchWaits();
}

/** The outbox may have sent it by now: the store decides. */
async function withdrawItem(drive: DriveHandle, handle: EffectOperation): Promise<void> {
  const { pos } = handle;
  handle.withdraw = undefined;
  try {
    await drive.journal.appendExclusive([{ kind: "effect.withdrawn", data: { pos } }]);
  } catch (error) {
    if (isTapeError(error, "TAPE_ILLEGAL_TRANSITION")) return; // sent: its outcome will come
    throw error;
  }
  handle.sent = false;
  drive.waits.clear((wait) => wait.pos !== pos);
}

/**
 * An inline effect that is not sent again, because its scope has ended. If no attempt of it may have happened, it is
 * withdrawn; otherwise the reconciler observes it. In a cancelled run the decision does the same for all effects.
 */
export async function withdrawPending(
  drive: DriveHandle,
  call: EffectCall<unknown>,
  handle: EffectOperation,
  { uncertain, failures }: AttemptHistory,
): Promise<void> {
  handle.withdraw = undefined;
  if (drive.finished || drive.cancelRequested) return;
  const { pos } = handle;
  if (uncertain && call.effect.semantics !== "read") {
    const record: NewRecord = { kind: "effect.settled", data: { pos, ...unknownAtEnd, failures } };
    await writeOutcome(drive, [record], () => awaitOutcome(drive, call, handle));
    return;
  }
  await writeOutcome(drive, [{ kind: "effect.withdrawn", data: { pos } }], () => {
    handle.sent = false;
  });
}

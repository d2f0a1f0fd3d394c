import { errorFields } from "../../base/reason.ts";
import type { CallResult, FailedCall, FailedResult } from "../../model/attempt.ts";
import { isTapeError, type TapeError } from "../../model/errors.ts";
import type { RecordData } from "../../model/records.ts";
import type { EffectCall, EffectDefinition } from "../../sdk/effect.ts";
import { DefiniteFailure, NotSent } from "../../sdk/outcomes.ts";
import type { DriveHandle } from "../core/handle.ts";
import { asStored, maxErrorChars, toStoredError } from "../replay/stored-value.ts";

/** The result of an effect that happened, or why it cannot be stored. */
export type ConfirmedResult = { readonly value: unknown } | { readonly error: unknown };

/** Errors about the content of a record, not about its writer or its time. */
const unstorable: ReadonlySet<string> = new Set(["TAPE_NOT_ENCODABLE", "TAPE_TOO_LARGE", "TAPE_BAD_INPUT"]);

/** The store rejects the value that a body returned. The effect has happened all the same. */
export const isUnstorable = (error: unknown): error is TapeError => isTapeError(error) && unstorable.has(error.code);

export function resultIn({ value, error }: Pick<RecordData<"effect.evidence">, "value" | "error">): ConfirmedResult {
  return error === undefined ? { value } : { error };
}

interface EvidenceClaim {
  readonly happened: boolean;
  readonly value?: unknown;
  readonly error?: unknown;
}

/** Leaves evidence. If the result cannot be stored, the evidence has the reason instead. */
export async function leaveStorable(
  claim: EvidenceClaim,
  leave: (claim: EvidenceClaim) => Promise<unknown>,
): Promise<void> {
  try {
    await leave(claim);
  } catch (error) {
    if (!claim.happened || !isUnstorable(error)) throw error;
    await leave({ happened: true, error: asStored(error) });
  }
}

/** Classifies an error. `NotSent` comes first: nothing was sent, whatever the author's `isDefinite` returns. */
export function failedCallOf(error: unknown, isDefinite: EffectDefinition["isDefinite"]): FailedCall {
  if (error instanceof NotSent) return "not_sent";
  if (error instanceof DefiniteFailure) return "refused";
  try {
    return isDefinite(error) ? "refused" : "unknown";
  } catch {
    return "unknown"; // an `isDefinite` that throws proves nothing
  }
}

/** Evidence of a late owner that the effect did not happen: it was not sent, or it was rejected for good. */
export function deniedCall(error: unknown): FailedResult {
  if (error instanceof NotSent) return { kind: "not_sent", error };
  if (error instanceof DefiniteFailure) return { kind: "refused", error };
  const { name, message } = error instanceof Error ? error : new DefiniteFailure("according to its late owner");
  if (name === "NotSent") return { kind: "not_sent", error: new NotSent(message) };
  return { kind: "refused", error: new DefiniteFailure(message) };
}

/** A fenced owner may not write the outcome, so it leaves its result as evidence. */
export async function leaveEvidence(
  drive: DriveHandle,
  call: EffectCall<unknown>,
  pos: number,
  attempt: number,
  result: CallResult,
): Promise<void> {
  if (result.kind === "unknown") return; // no evidence either way
  const { store, lease, log, runId } = drive.options;
  const { token, nonce } = lease.fence;
  try {
    const evidence =
      result.kind === "returned"
        ? { happened: true, value: result.value }
        : { happened: false, error: toStoredError(result.error, maxErrorChars) };
    const of = { run: lease.term.journal, pos, token, nonce };
    await leaveStorable(evidence, (claim) => store.intake.leaveEvidence(lease.term.tenant, of, claim));
    log("info", "effect.evidence_recorded", { run: runId, effect: call.effect.name, attempt });
  } catch (error) {
    log("warn", "effect.evidence_refused", { run: runId, effect: call.effect.name, ...errorFields(error) });
  }
}

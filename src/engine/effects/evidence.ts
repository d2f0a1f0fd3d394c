import { errorFields } from "../../base/reason.ts";
import type { CallResult, FailedCall, FailedResult } from "../../model/attempt.ts";
import { isTapeError, type TapeError } from "../../model/errors.ts";
import type { RecordData } from "../../model/records.ts";
import type { EffectCall, EffectDefinition } from "../../sdk/effect.ts";
import { DefiniteFailure, NotSent } from "../../sdk/outcomes.ts";
import type { DriveHandle } from "../core/handle.ts";
import { asStored, maxErrorChars, toStoredError } from "../replay/stored-value.ts";

/** What an effect that happened came to: its result, or why that cannot be stored. */
export type ConfirmedResult = { readonly value: unknown } | { readonly error: unknown };

/** Refusals of what a record says, as against who says it or when. */
const unstorable: ReadonlySet<string> = new Set(["TAPE_NOT_ENCODABLE", "TAPE_TOO_LARGE", "TAPE_BAD_INPUT"]);

/** The store refuses what a body returned: the act happened all the same. */
export const isUnstorable = (error: unknown): error is TapeError => isTapeError(error) && unstorable.has(error.code);

export function resultIn({ value, error }: Pick<RecordData<"effect.evidence">, "value" | "error">): ConfirmedResult {
  return error === undefined ? { value } : { error };
}

interface Said {
  readonly happened: boolean;
  readonly value?: unknown;
  readonly error?: unknown;
}

/** That it happened is kept also where its result cannot be: then the evidence says why. */
export async function leaveSaid(said: Said, leave: (said: Said) => Promise<unknown>): Promise<void> {
  try {
    await leave(said);
  } catch (error) {
    if (!said.happened || !isUnstorable(error)) throw error;
    await leave({ happened: true, error: asStored(error) });
  }
}

/** How sure an error leaves us. `NotSent` first: nothing has left, whatever the author's `isDefinite` takes errors for. */
export function failedCallOf(error: unknown, isDefinite: EffectDefinition["isDefinite"]): FailedCall {
  if (error instanceof NotSent) return "not_sent";
  if (error instanceof DefiniteFailure) return "refused";
  try {
    return isDefinite(error) ? "refused" : "unknown";
  } catch {
    return "unknown"; // a judge that fails has not said that it did not happen
  }
}

/** The late owner says that it did not happen: it was not even sent, or refused for good. */
export function deniedCall(error: unknown): FailedResult {
  if (error instanceof NotSent) return { kind: "not_sent", error };
  if (error instanceof DefiniteFailure) return { kind: "refused", error };
  const { name, message } = error instanceof Error ? error : new DefiniteFailure("its late owner says so");
  if (name === "NotSent") return { kind: "not_sent", error: new NotSent(message) };
  return { kind: "refused", error: new DefiniteFailure(message) };
}

/** A fenced-out owner may not write the outcome, but what it knows is worth keeping. */
export async function leaveEvidence(
  drive: DriveHandle,
  act: EffectCall<unknown>,
  pos: number,
  attempt: number,
  result: CallResult,
): Promise<void> {
  if (result.kind === "unknown") return; // it does not know either
  const { store, lease, log, runId } = drive.options;
  const { token, nonce } = lease.fence;
  try {
    const evidence =
      result.kind === "returned"
        ? { happened: true, value: result.value }
        : { happened: false, error: toStoredError(result.error, maxErrorChars) };
    const of = { run: lease.term.journal, pos, token, nonce };
    await leaveSaid(evidence, (said) => store.intake.leaveEvidence(lease.term.tenant, of, said));
    log("info", "effect.evidence_recorded", { run: runId, effect: act.effect.name, attempt });
  } catch (error) {
    log("warn", "effect.evidence_refused", { run: runId, effect: act.effect.name, ...errorFields(error) });
  }
}

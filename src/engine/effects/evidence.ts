import { errorFields } from "../../base/reason.ts";
import { isTapeError, type TapeError } from "../../model/errors.ts";
import type { RecordData } from "../../model/records.ts";
import type { EffectCall, EffectDefinition } from "../../sdk/effect.ts";
import { DefiniteFailure, NotSent } from "../../sdk/outcomes.ts";
import type { DriveHandle } from "../core/handle.ts";
import { asStored, toStoredError } from "../replay/stored-value.ts";

/** What came of calling a body. */
export type CallResult = { readonly value: unknown } | { readonly error: unknown };

/** Refusals of what a record says, as against who says it or when. */
const unstorable: ReadonlySet<string> = new Set(["TAPE_NOT_ENCODABLE", "TAPE_TOO_LARGE", "TAPE_BAD_INPUT"]);

/** The store refuses what a body returned: the act happened all the same. */
export const isUnstorable = (error: unknown): error is TapeError => isTapeError(error) && unstorable.has(error.code);

/** What an act that happened came to: its result, or why that could not be stored. */
export function resultIn({ value, error }: Pick<RecordData<"effect.evidence">, "value" | "error">): CallResult {
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

export function isDefinite(effect: EffectDefinition, error: unknown): boolean {
  if (error instanceof DefiniteFailure) return true;
  try {
    return effect.isDefinite(error);
  } catch {
    return false; // a judge that fails has not said that it did not happen
  }
}

/** The late owner says that it did not happen: it was not even sent, or refused for good. */
export function denialError(error: unknown): NotSent | DefiniteFailure {
  if (error instanceof NotSent || error instanceof DefiniteFailure) return error;
  const { name, message } = error instanceof Error ? error : new DefiniteFailure("its late owner says so");
  return name === "NotSent" ? new NotSent(message) : new DefiniteFailure(message);
}

/** A fenced-out owner may not write the outcome, but what it knows is worth keeping. */
export async function leaveEvidence(
  drive: DriveHandle,
  act: EffectCall<unknown>,
  pos: number,
  attempt: number,
  result: CallResult,
): Promise<void> {
  const definite = "error" in result && (isDefinite(act.effect, result.error) || result.error instanceof NotSent);
  if ("error" in result && !definite) return; // it does not know either
  const { store, lease, log, runId } = drive.options;
  const { token, nonce } = lease.fence;
  try {
    const evidence =
      "value" in result
        ? { happened: true, value: result.value }
        : { happened: false, error: toStoredError(result.error) };
    const of = { run: lease.term.journal, pos, token, nonce };
    await leaveSaid(evidence, (said) => store.intake.leaveEvidence(lease.term.tenant, of, said));
    log("info", "effect.evidence_recorded", { run: runId, effect: act.effect.name, attempt });
  } catch (error) {
    log("warn", "effect.evidence_refused", { run: runId, effect: act.effect.name, ...errorFields(error) });
  }
}

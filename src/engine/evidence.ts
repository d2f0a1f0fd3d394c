import type { Act, EffectDefinition } from "../sdk/effect.ts";
import { Definite, NotSent } from "../sdk/outcomes.ts";
import type { Driver } from "./driver.ts";
import { storedError } from "./operations.ts";

/** What came of calling a body. */
export type Result = { readonly value: unknown } | { readonly error: unknown };

export function isDefinite(effect: EffectDefinition, error: unknown): boolean {
  if (error instanceof Definite) return true;
  try {
    return effect.definite(error);
  } catch {
    return false; // a judge that fails has not said that it did not happen
  }
}

/** The late owner says that it did not happen: it was not even sent, or refused for good. */
export function denial(error: unknown): NotSent | Definite {
  if (error instanceof NotSent || error instanceof Definite) return error;
  const { name, message } = error instanceof Error ? error : new Definite("its late owner says so");
  return name === "NotSent" ? new NotSent(message) : new Definite(message);
}

/** A fenced-out owner may not write the outcome, but what it knows is worth keeping. */
export async function leaveEvidence(
  drive: Driver,
  act: Act<unknown>,
  pos: number,
  attempt: number,
  result: Result,
): Promise<void> {
  const definite = "error" in result && (isDefinite(act.effect, result.error) || result.error instanceof NotSent);
  if ("error" in result && !definite) return; // it does not know either
  const { store, lease, log, runId } = drive.options;
  const { token, nonce } = lease.fence;
  try {
    const evidence =
      "value" in result
        ? { happened: true, value: result.value }
        : { happened: false, error: storedError(result.error) };
    await store.intake.leaveEvidence({ run: lease.term.journal, pos, token, nonce }, evidence);
    log("info", "effect.evidence_left", { run: runId, effect: act.effect.name, attempt });
  } catch (error) {
    log("warn", "effect.evidence_refused", { run: runId, effect: act.effect.name, error: String(error) });
  }
}

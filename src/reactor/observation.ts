import { describeThrown } from "../base/thrown.ts";
import { observeWithTimeout } from "../engine/item/call.ts";
import type { ReactorDeps } from "../engine/item/deps.ts";
import type { Item } from "../engine/item/item.ts";
import { maxErrorChars, toStoredError } from "../engine/replay/stored-value.ts";
import type { NewRecord } from "../model/records.ts";
import type { EffectContext } from "../sdk/effect.ts";
import type { Observation } from "../sdk/outcomes.ts";

const observeTimeoutMs = 30_000;

/** Calls `observe` once. A failure, a time-out and a malformed result count as inconclusive. */
export async function observeOnce(
  deps: ReactorDeps,
  item: Item,
  observer: (args: never, fx: EffectContext) => unknown,
): Promise<Observation> {
  const called = await observeWithTimeout(item, deps, observeTimeoutMs, (signal) =>
    observer(item.args as never, item.context(item.effect.attempt, signal)),
  );
  if (called.kind === "returned") return asObservation(called.value);
  return inconclusive(`observe failed: ${String(toStoredError(called.error, maxErrorChars))}`);
}

export function observed(item: Item, seen: Observation, why?: string): NewRecord {
  const observation = seen.observed;
  const detail = why === undefined ? seen : { observed: observation, why };
  return { kind: "effect.observed", data: { ...item.ref, observation, detail } };
}

export const inconclusive = (why: string): Observation => ({
  observed: "inconclusive",
  reason: String(toStoredError(why, maxErrorChars)),
});

/** `observe` is user code: a malformed or unreadable result counts as inconclusive. */
function asObservation(result: unknown): Observation {
  try {
    const seen = result as Observation | null | undefined;
    switch (seen?.observed) {
      case "confirmed":
        return { observed: "confirmed", value: seen.value };
      case "absent":
        return { observed: "absent", final: seen.final === true };
      case "inconclusive":
        return inconclusive(seen.reason);
      case "duplicate":
        return Array.isArray(seen.refs)
          ? { observed: "duplicate", value: seen.value, refs: [...seen.refs] }
          : inconclusive("a duplicate without refs");
      default:
        return inconclusive("observe returned no outcome");
    }
  } catch (error) {
    return inconclusive(`the result of observe cannot be read: ${describeThrown(error)}`);
  }
}

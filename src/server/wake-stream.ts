import { builtIns } from "../config/schema.ts";
import type { WakeHint } from "../store/contract/store.ts";
import type { ServerDeps } from "./handler-types.ts";

/** Hints that nobody has read yet: beyond it they are one hint, that anything may have happened. */
const maxPending = 1_000;
/** Longer than any heartbeat; a hint ends it at once. */
const restMs = 60_000;
/** A moment for hints to gather: one line each would be a system call each. */
const gatherMs = 5;

const known: ReadonlySet<string> = new Set([...builtIns, "agent"]);

/**
 * The store's hints, as far as they are this tenant's business: another's journals and values are left out, and a reactor
 * whose name is somebody's own is only "something happened".
 */
export async function* streamWakeHints(
  { store, clock }: ServerDeps,
  tenant: string,
  signal: AbortSignal,
): AsyncGenerator<readonly WakeHint[]> {
  let pending = new Map<string, WakeHint>();
  let wakeUp = (): void => {};
  const unsubscribe = store.onWake((wake) => {
    if (wake.of !== "any" && wake.tenant !== undefined && wake.tenant !== tenant) return;
    const told: WakeHint = wake.of === "reactor" && !known.has(wake.reactor) ? { of: "any" } : wake;
    if (pending.size >= maxPending) pending = new Map([["any", { of: "any" }]]);
    pending.set(JSON.stringify(told), told);
    wakeUp();
  });
  try {
    while (!signal.aborted) {
      if (pending.size === 0) {
        const rest = new AbortController();
        wakeUp = () => rest.abort("news");
        await clock.sleep(restMs, AbortSignal.any([signal, rest.signal]));
        await clock.sleep(gatherMs, signal);
      }
      const wakes = [...pending.values()];
      pending = new Map();
      if (wakes.length > 0) yield wakes;
    }
  } finally {
    unsubscribe();
  }
}

import { builtIns } from "../config/schema.ts";
import { plainReactor } from "../model/build.ts";
import type { WakeHint } from "../store/contract/store.ts";
import type { ServerDeps } from "./handler-types.ts";

/** Unread hints. Beyond this they are merged into one hint of kind "any". */
const maxPending = 1_000;
/** Longer than any heartbeat; a hint ends the pause at once. */
const pauseMs = 60_000;
/** Hints are batched for this long: one line each would be one system call each. */
const batchMs = 5;

const known: ReadonlySet<string> = new Set([...builtIns, "agent"]);

/**
 * The store's wake hints for one tenant. Journals and values of other tenants are left out, and a hint for a custom
 * reactor becomes "any".
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
    const hint: WakeHint = wake.of === "reactor" && !known.has(plainReactor(wake.reactor)) ? { of: "any" } : wake;
    if (pending.size >= maxPending) pending = new Map([["any", { of: "any" }]]);
    pending.set(JSON.stringify(hint), hint);
    wakeUp();
  });
  try {
    while (!signal.aborted) {
      if (pending.size === 0) {
        const pause = new AbortController();
        wakeUp = () => pause.abort("hint");
        await clock.sleep(pauseMs, AbortSignal.any([signal, pause.signal]));
        await clock.sleep(batchMs, signal);
      }
      const wakes = [...pending.values()];
      pending = new Map();
      if (wakes.length > 0) yield wakes;
    }
  } finally {
    unsubscribe();
  }
}

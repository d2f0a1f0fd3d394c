import { builtIns } from "../config/schema.ts";
import type { Wake } from "../store/contract.ts";
import type { ServerGround } from "./handler.ts";

/** Hints that nobody has read yet: beyond it they are one hint, that anything may have happened. */
const mostPending = 1_000;
const mostForeign = 10_000;
/** Longer than any heartbeat; a hint ends it at once. */
const restMs = 60_000;
/** A moment for hints to gather: one line each would be a system call each. */
const gatherMs = 5;

const known: ReadonlySet<string> = new Set([...builtIns, "agent"]);

/**
 * The store's hints, as far as they are this tenant's business: another's journals and values are left out, and a reactor
 * whose name is somebody's own is only "something happened".
 */
export async function* followWakes(
  { store, clock, ownership }: ServerGround,
  tenant: string,
  signal: AbortSignal,
): AsyncGenerator<readonly Wake[]> {
  let pending = new Map<string, Wake>();
  const foreign = new Set<number>(); // a journal never changes its tenant: one look at each is enough
  let rouse = (): void => {};
  const deaf = store.onWake((wake) => {
    if ((wake.of === "value" || wake.of === "reactor") && wake.tenant !== undefined && wake.tenant !== tenant) return;
    if (wake.of === "journal" && foreign.has(wake.journal)) return;
    const told: Wake = wake.of === "reactor" && !known.has(wake.reactor) ? { of: "any" } : wake;
    if (pending.size >= mostPending) pending = new Map([["any", { of: "any" }]]);
    pending.set(JSON.stringify(told), told);
    rouse();
  });
  try {
    while (!signal.aborted) {
      if (pending.size === 0) {
        const rest = new AbortController();
        rouse = () => rest.abort("news");
        await clock.sleep(restMs, AbortSignal.any([signal, rest.signal]));
        await clock.sleep(gatherMs, signal);
      }
      const wakes = [...pending.values()];
      pending = new Map();
      const journals = wakes.flatMap((wake) => (wake.of === "journal" ? [wake.journal] : []));
      const strange = await ownership.strangers(tenant, journals);
      if (foreign.size > mostForeign) foreign.clear();
      for (const journal of strange) foreign.add(journal);
      const ours = wakes.filter((wake) => wake.of !== "journal" || !strange.has(wake.journal));
      if (ours.length > 0) yield ours;
    }
  } finally {
    deaf();
  }
}

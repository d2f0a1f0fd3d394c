import type { StandbyOptions } from "../../lease/keeper.ts";
import type { Lease } from "../../lease/lease.ts";
import { ReleaseWatcher } from "../../lease/release-watcher.ts";
import type { LeaseView } from "../../model/lease.ts";
import type { SingletonDeps } from "./term.ts";

/**
 * Leading in a store that only this process can have open: at once, without standing by and without renewal. Whoever the
 * lease names is gone, with one exception: another handle of this very process, which is waited for like anybody.
 */
const heldInProcess = new Set<string>();
/** One look at a time, or two handles would see the same dead holder and throw each other out. */
let queue: Promise<unknown> = Promise.resolve();

const keyOf = (owner: string, name: string): string => `${owner}\n${name}`;

export async function acquireExclusively(
  name: string,
  options: StandbyOptions & { readonly signal: AbortSignal; readonly pollMs: number },
  deps: Pick<SingletonDeps, "store" | "keeper" | "tenant" | "clock" | "log">,
): Promise<Lease | undefined> {
  const { store, clock, log } = deps;
  while (!options.signal.aborted) {
    const awakening = new ReleaseWatcher(store);
    try {
      const tried = queue.then(() => tryExclusive(name, options, deps));
      queue = tried.catch(() => {});
      const answer = await tried;
      if ("lease" in answer) return answer.lease;
      log("debug", "singleton.standby", { name, holder: answer.holder?.label, paused: answer.holder?.paused });
      await awakening.wait(options.pollMs, answer.holder?.journal, clock, options.signal);
    } finally {
      awakening.stop();
    }
  }
  return undefined;
}

async function tryExclusive(
  name: string,
  options: StandbyOptions,
  deps: Pick<SingletonDeps, "store" | "keeper" | "tenant">,
): Promise<{ lease: Lease } | { holder: LeaseView | undefined }> {
  const { store, keeper, tenant } = deps;
  const holder = await store.read.lease(tenant, { name });
  const neighbour =
    holder?.owner !== undefined && holder.owner !== null && heldInProcess.has(keyOf(holder.owner, name));
  if (neighbour || holder?.paused === true) return { holder };
  const lease = await keeper.acquireExclusive(name, holder, options);
  if (lease === undefined) return { holder };
  const key = keyOf(keeper.identity.owner, name);
  heldInProcess.add(key);
  lease.onChange(({ to }) => {
    if (to === "lost") heldInProcess.delete(key);
  });
  return { lease };
}

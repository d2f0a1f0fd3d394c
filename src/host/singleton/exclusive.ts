import type { AcquireOptions, StandbyOptions } from "../../lease/keeper.ts";
import type { Lease } from "../../lease/lease.ts";
import { ReleaseWatcher } from "../../lease/release-watcher.ts";
import type { LeaseView } from "../../model/lease.ts";
import type { SingletonDeps } from "./term.ts";

/**
 * Holders in this process, for a store that only this process can open. There a lease is acquired at once, without
 * standby and without renewal: its recorded holder is gone, unless it is another handle of this process. Such a holder
 * is waited for as usual.
 */
const heldInProcess = new Set<string>();
/** One check at a time; otherwise two handles would see the same dead holder and fence each other. */
let queue: Promise<unknown> = Promise.resolve();

const keyOf = (owner: string, name: string): string => `${owner}\n${name}`;

export async function acquireExclusively(
  name: string,
  options: StandbyOptions & { readonly signal: AbortSignal; readonly pollMs: number },
  deps: Pick<SingletonDeps, "store" | "keeper" | "tenant" | "clock" | "log">,
): Promise<Lease | undefined> {
  const { store, clock, log } = deps;
  while (!options.signal.aborted) {
    const watcher = new ReleaseWatcher(store);
    try {
      const attempt = queue.then(() => tryExclusive(name, options, deps));
      queue = attempt.catch(() => {});
      const result = await attempt;
      if ("lease" in result) return result.lease;
      const { holder } = result;
      log("debug", "singleton.standby", { name, holder: holder?.label, paused: holder?.paused });
      await watcher.wait(options.pollMs, holder?.journal, clock, options.signal);
    } finally {
      watcher.stop();
    }
  }
  return undefined;
}

/** One attempt; undefined: another handle of this process holds it, or an operator has paused it. */
export async function holdExclusively(
  name: string,
  options: AcquireOptions,
  deps: Pick<SingletonDeps, "store" | "keeper" | "tenant">,
): Promise<Lease | undefined> {
  const attempt = queue.then(() => tryExclusive(name, options, deps));
  queue = attempt.catch(() => {});
  const result = await attempt;
  return "lease" in result ? result.lease : undefined;
}

async function tryExclusive(
  name: string,
  { maxStallMs: _none, ...options }: AcquireOptions,
  deps: Pick<SingletonDeps, "store" | "keeper" | "tenant">,
): Promise<{ lease: Lease } | { holder: LeaseView | undefined }> {
  const { store, keeper, tenant } = deps;
  const holder = await store.read.lease(tenant, { name });
  const isHeldHere =
    holder?.owner !== undefined && holder.owner !== null && heldInProcess.has(keyOf(holder.owner, name));
  if (isHeldHere || holder?.paused === true) return { holder };
  const lease = await keeper.acquireExclusive(name, holder, options);
  if (lease === undefined) return { holder };
  const key = keyOf(keeper.identity.owner, name);
  heldInProcess.add(key);
  lease.onChange(({ to }) => {
    if (to === "lost") heldInProcess.delete(key);
  });
  return { lease };
}

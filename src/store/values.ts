import type { Clock } from "../base/clock.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { Store, StoredValue } from "./contract/store.ts";

/** A change of a value: what it was and what it is. `undefined`: it did not exist. */
export interface ValueTransition {
  readonly key: string;
  readonly version: number;
  readonly previous: unknown;
  readonly value: unknown;
  readonly deleted: boolean;
}

/** How often a read-modify-write tries before it gives up: each loss means that somebody else made progress. */
const maxTries = 100;

/**
 * Reads, lets `change` decide, and writes if nobody wrote meanwhile; else again. `undefined` leaves the value as it is.
 *
 * @example
 * await updateValue(store, "acme", "visits", (visits) => (typeof visits === "number" ? visits : 0) + 1);
 */
export async function updateValue(
  store: Pick<Store, "read" | "intake">,
  tenant: string,
  key: string,
  change: (current: unknown) => unknown,
): Promise<StoredValue | undefined> {
  for (let tries = 1; ; tries++) {
    const current = await store.read.value(tenant, key);
    const next = await change(current?.deleted === true ? undefined : current?.value);
    if (next === undefined) return current;
    try {
      return await store.intake.putValue(tenant, key, next, { version: current?.version ?? 0 });
    } catch (error) {
      if (!isTapeError(error, "TAPE_VERSION_CONFLICT") || tries >= maxTries) throw error;
    }
  }
}

/** From which version and how often to read a value. */
export interface WatchOptions {
  /** Deliver transitions after this version; default: from the present one on. */
  readonly after?: number;
  readonly signal?: AbortSignal;
  /** Look at least so often, in case a hint was lost. Default 1 s. */
  readonly pollMs?: number;
}

/**
 * Every transition of one value, in order, none twice, resumable by version; but a deletion erases what was before it, and
 * whoever has not seen that by then sees the deletion alone. Ends when the signal aborts.
 */
export async function* watchValue(
  store: Pick<Store, "read" | "onWake">,
  clock: Clock,
  tenant: string,
  key: string,
  options: WatchOptions = {},
): AsyncGenerator<ValueTransition> {
  const { signal, pollMs = 1_000 } = options;
  const start = await store.read.value(tenant, key);
  let version = options.after ?? start?.version ?? 0;
  if (version > (start?.version ?? 0)) {
    throw new TapeError("TAPE_BAD_INPUT", `${key} is at version ${start?.version ?? 0}, not yet at ${version}`, {
      key,
    });
  }
  let previous = await valueAt(store, tenant, key, version);
  let woken = () => {};
  let pending = false;
  const stop = store.onWake((wake) => {
    if (wake.of === "any" || (wake.of === "value" && wake.tenant === tenant && wake.key === key)) {
      pending = true;
      woken();
    }
  });
  try {
    while (!signal?.aborted) {
      pending = false;
      for (const next of await store.read.valueHistory(tenant, key, version)) {
        yield { key, version: next.version, previous, value: next.value, deleted: next.deleted };
        previous = next.value;
        version = next.version;
        pending = true; // there may be another page
      }
      if (pending || signal?.aborted) continue;
      const local = new AbortController();
      woken = () => local.abort();
      await clock.sleep(pollMs, signal === undefined ? local.signal : AbortSignal.any([signal, local.signal]));
    }
  } finally {
    stop();
  }
}

async function valueAt(store: Pick<Store, "read">, tenant: string, key: string, version: number): Promise<unknown> {
  if (version === 0) return undefined;
  const [found] = await store.read.valueHistory(tenant, key, version - 1, 1);
  return found?.version === version ? found.value : undefined;
}

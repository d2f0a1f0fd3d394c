import type { Clock } from "../base/clock.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { Store, StoredValue } from "./contract/store.ts";

/** One change of a value, with the value before and after it. `undefined`: it did not exist. */
export interface ValueTransition {
  /** The key of the value. */
  readonly key: string;
  readonly version: number;
  /** The value before it. */
  readonly previous: unknown;
  readonly value: unknown;
  readonly deleted: boolean;
}

/** Tries of a read-modify-write before it fails. Each conflict means that another writer made progress. */
const maxTries = 100;

/**
 * Reads the value, calls `change`, and writes if no other writer was faster; otherwise retries. If `change` returns
 * `undefined`, the value stays as it is.
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

/** From which version on, and how often, to read a value. */
export interface WatchOptions {
  /** Deliver transitions after this version. Default: from the current one on. */
  readonly after?: number;
  readonly signal?: AbortSignal;
  /** Poll at least this often, in case a hint is lost. Default 1 s. */
  readonly pollMs?: number;
}

/**
 * Every transition of one value, in order, each once, resumable by version. A deletion erases earlier versions: a
 * watcher that has not read them by then sees only the deletion. Ends when the signal aborts.
 *
 * @example
 * for await (const { version, value } of watchValue(store, systemClock, "acme", "visits")) console.log(version, value);
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
    throw new TapeError("TAPE_BAD_INPUT", `${key} has version ${start?.version ?? 0}, not yet ${version}`, {
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

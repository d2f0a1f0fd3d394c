import type { Clock } from "../base/clock.ts";
import type { FeedRecord, Store, WakeHint } from "./contract/store.ts";

/** From where, for which tenant and how often to read the feed. */
export interface FollowOptions {
  readonly from?: string;
  readonly tenant?: string;
  readonly signal?: AbortSignal;
  readonly pollMs?: number;
}

/** Whether the hint certainly concerns another tenant. */
export function isForeign(wake: WakeHint, tenant: string | undefined): boolean {
  return tenant !== undefined && "tenant" in wake && wake.tenant !== undefined && wake.tenant !== tenant;
}

/**
 * The feed as a stream: every record once, in order within each journal, each with the cursor that resumes after it.
 */
export async function* followFeed(
  store: Pick<Store, "read" | "onWake">,
  clock: Clock,
  options: FollowOptions = {},
): AsyncGenerator<FeedRecord> {
  const { signal, pollMs = 1_000, tenant } = options;
  let cursor = options.from;
  let woken = () => {};
  let pending = false;
  const stop = store.onWake((wake) => {
    if (isForeign(wake, tenant)) return;
    pending = true;
    woken();
  });
  try {
    while (!signal?.aborted) {
      pending = false;
      const page = await store.read.feed(cursor, undefined, tenant);
      yield* page.records;
      cursor = page.cursor;
      if (page.records.length > 0 || page.more === true || pending || signal?.aborted) {
        await clock.sleep(0, signal); // yields to other tasks: an embedded store responds in the same tick
        continue;
      }
      const local = new AbortController();
      woken = () => local.abort();
      await clock.sleep(pollMs, signal === undefined ? local.signal : AbortSignal.any([signal, local.signal]));
    }
  } finally {
    stop();
  }
}

import type { Clock } from "../base/clock.ts";
import type { FeedRecord, Store, WakeHint } from "./contract/store.ts";
import { FollowPace } from "./follow-pace.ts";

/** From where, for which tenant and how often to read the feed. */
export interface FollowOptions {
  /** A cursor; "now": only what is written from now on. Default: everything. */
  readonly from?: string;
  readonly tenant?: string;
  readonly signal?: AbortSignal;
  /** The longest pause between two polls; it is shorter while records come. Default: one second. */
  readonly pollMs?: number;
}

/** Whether the hint certainly concerns another tenant. */
export function isForeign(wake: WakeHint, tenant: string | undefined): boolean {
  return tenant !== undefined && "tenant" in wake && wake.tenant !== undefined && wake.tenant !== tenant;
}

/**
 * The feed as a stream: every record once, in order within each journal, each with the cursor that resumes after it.
 *
 * @example
 * for await (const { cursor, kind } of followFeed(store, systemClock, { tenant: "acme" })) console.log(cursor, kind);
 */
export async function* followFeed(
  store: Pick<Store, "read" | "onWake">,
  clock: Clock,
  options: FollowOptions = {},
): AsyncGenerator<FeedRecord> {
  const { signal, pollMs = 1_000, tenant } = options;
  const pace = new FollowPace(clock, pollMs);
  let cursor = options.from;
  let woken = () => {};
  let pending = false;
  const stop = store.onWake((wake) => {
    if (isForeign(wake, tenant)) return;
    pending = true;
    woken();
  });
  try {
    if (cursor === "now") cursor = await store.read.frontier(tenant);
    while (!signal?.aborted) {
      pending = false;
      const page = await store.read.feed(cursor, undefined, tenant);
      yield* page.records;
      if (page.records.length > 0) pace.came();
      cursor = page.cursor;
      if (page.records.length > 0 || page.more === true || pending || signal?.aborted) {
        await clock.sleep(0, signal); // yields to other tasks: an embedded store responds in the same tick
        continue;
      }
      const local = new AbortController();
      woken = () => local.abort();
      await clock.sleep(pace.next(), signal === undefined ? local.signal : AbortSignal.any([signal, local.signal]));
    }
  } finally {
    stop();
  }
}

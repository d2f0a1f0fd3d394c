import type { FeedRecord } from "../src/store/contract/store.ts";
import { wholeFeed } from "./shared-store.ts";
import type { Stage } from "./stage.ts";

/** What was lost when the store went back. */
export interface RewindLoss {
  /** Wall time of the snapshot, and of the moment when the store went back to it. */
  readonly from: number;
  readonly to: number;
  /** Records committed, and perhaps acknowledged, in between. */
  readonly feed: readonly FeedRecord[];
}

/** Rewinds the store to a snapshot, as after a failover to a lagging standby, and declares it restored. */
export class Rewinder {
  readonly #stage: Stage;
  lost: RewindLoss | undefined;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async run(): Promise<void> {
    const { plan, time, shared } = this.#stage;
    if (plan.rewind === undefined) return;
    const { snapshotAtMs, atMs, awayMs } = plan.rewind;
    await time.sleep(snapshotAtMs);
    const from = time.wall();
    const snapshot = shared.snapshot();
    const known = (await wholeFeed(shared.store)).length;
    await time.sleep(atMs - snapshotAtMs);
    const to = time.wall();
    const feed = await shared.rewind(snapshot, async (store) => {
      await time.sleep(awayMs);
      await store.claim.restored("the plan says so", "rewinder");
    });
    this.lost = { from, to, feed: feed.slice(known) };
  }
}

import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { leaseFigures } from "../leases.ts";

/** What a store does when it has nothing else to do, on this machine. */
export interface StoreRates {
  /** Runs that woke, executed one step and parked again, a second. */
  readonly wakes: number;
  readonly renewals: number;
}

/** Above the second within which a process keeps a sleeping run in memory instead of parking it. */
const intervalMs = 5_000;

/** More runs than the store can wake in an interval, so that some are always due. */
export async function saturate(url: string, runs: number, seconds: number): Promise<StoreRates> {
  let woken = 0;
  const waits = workflow("waits", async (tape) => {
    for (;;) {
      await tape.sleep(intervalMs);
      await tape.step("work", () => {
        woken++;
        return { ok: true };
      });
    }
  });
  const app = await Tape.open({
    store: url,
    runner: createRunner({ workflows: [waits] }),
    concurrency: 256,
    log: "silent",
  });
  try {
    const batch = 500;
    for (let k = 0; k < runs; k += batch)
      await app.startAll(
        waits,
        Array.from({ length: Math.min(batch, runs - k) }, () => ({ input: undefined })),
      );
    // Every run has executed its first turn before half of them have woken.
    while (woken < runs / 2) await new Promise((resolve) => setTimeout(resolve, 100));
    const before = woken;
    const started = performance.now();
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
    const wakes = ((woken - before) * 1_000) / (performance.now() - started);
    return { wakes, renewals: await renewalsOf(url) };
  } finally {
    await app.close();
  }
}

async function renewalsOf(url: string): Promise<number> {
  const store = await openStore(url);
  try {
    const { renew1000Ms = 0 } = await leaseFigures(store);
    return 1_000_000 / renew1000Ms;
  } finally {
    await store.close();
  }
}

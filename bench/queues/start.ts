import type { QueueSystemName } from "../peers/queues/system.ts";
import { say } from "../work.ts";
import type { PartResult } from "./figures.ts";
import { among, type QueuePlan } from "./plan.ts";
import type { Site } from "./site.ts";

const systems: readonly QueueSystemName[] = ["tape-postgres", "tape-sqlite", "dbos", "pg-boss", "graphile-worker"];
const warm = 50;
const everyMs = 15;

/**
 * From the call that starts a run in one process until its first line in another one, through an empty queue. Starts are
 * 15 ms and a call apart.
 *
 *   startP99Ms   of ours on PostgreSQL
 */
export async function measureStart(site: Site, plan: QueuePlan): Promise<PartResult> {
  const { starts } = plan.sizes.start;
  const lags: Partial<Record<QueueSystemName, Readonly<Record<string, number>>>> = {};
  for (const system of among(plan, systems))
    await site.at(system, { limits: { concurrency: 128 } }, async (place) => {
      const [starter, worker] = [await place.start("starter"), await place.start("worker")];
      await worker.ask({ ask: "serve" });
      for (const jobs of [warm, starts]) {
        if (jobs === starts) await worker.ask({ ask: "lags", jobs: warm }, 120_000);
        await starter.ask({ ask: "trickle", jobs, everyMs }, 600_000);
      }
      const lag = await worker.ask({ ask: "lags", jobs: starts, after: warm }, 120_000);
      lags[system] = Object.fromEntries(Object.entries(lag).map(([name, ms]) => [name, Math.round(ms * 10) / 10]));
      say(`start ${system}: ${JSON.stringify(lags[system])}`);
    });
  return { figures: { startP99Ms: lags["tape-postgres"]?.p99Ms ?? null }, beside: { lags } };
}

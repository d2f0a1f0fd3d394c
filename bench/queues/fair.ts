import { isOurQueue, type QueueSystemName } from "../peers/queues/system.ts";
import type { Jobs } from "../peers/queues/worker.ts";
import { say } from "../work.ts";
import { add, medianRatio, medians, type PartResult, type Rounds, turned, worst } from "./figures.ts";
import { among, type QueuePlan } from "./plan.ts";
import type { Site } from "./site.ts";

const concurrency = 128;
const systems: readonly QueueSystemName[] = ["tape-postgres", "tape-sqlite", "dbos", "pg-boss"];
/** Where a peer is stopped; its ratio is then at least this. */
const maxMs = 30_000;

/**
 * One key with a long backlog, started first, and 99 keys with a few jobs each. Ideal is what the same system takes for
 * the work of all equal keys when the large one has no more than the others. Ours shares among keys without a limit for
 * each; the peers need one, and get 2: 128 at a time over 100 keys. Peers have one round.
 *
 *   fair   time until the 99 are done ÷ ideal
 */
export async function measureFair(site: Site, plan: QueuePlan): Promise<PartResult> {
  const { large, keys, each: eachOfOurs, eachOfPeers } = plan.sizes.fair;
  const [beside, ideal]: [Rounds, Rounds] = [new Map(), new Map()];
  const measured = among(plan, systems);
  for (let round = 0; round < plan.rounds; round++)
    for (const system of turned(measured, round).filter((name) => round === 0 || isOurQueue(name))) {
      const each = isOurQueue(system) ? eachOfOurs : eachOfPeers;
      for (const [rounds, backlog] of [
        [beside, large],
        [ideal, each],
      ] as const) {
        const limits = isOurQueue(system) ? { concurrency } : { concurrency, perKey: 2 };
        await site.at(system, { limits }, async (place) => {
          const worker = await place.start("worker");
          const jobs: Jobs[] = [
            { key: "large", count: backlog },
            { key: "small-", keys, count: keys * each },
          ];
          await worker.ask({ ask: "enqueue", jobs }, 600_000);
          // Without a backlog all of them count: ideal is the work of a hundred equal keys.
          const part = backlog === each ? { jobs: (keys + 1) * each } : { jobs: keys * each, except: "large" };
          const { ms, done, finished } = await worker.ask({ ask: "drain", ...part, maxMs }, 120_000);
          add(rounds, system, ms!);
          say(
            `fair ${round + 1}/${plan.rounds} ${system}, ${backlog} in the large key: ${Math.round(ms!)} ms, ${done} jobs done${finished ? "" : ", stopped"}`,
          );
        });
      }
    }
  const ratio = (system: QueueSystemName): number | null => medianRatio(beside.get(system), ideal.get(system));
  return {
    figures: { fair: worst("max", [ratio("tape-sqlite"), ratio("tape-postgres")]) },
    beside: {
      ratios: Object.fromEntries(measured.map((system) => [system, ratio(system)])),
      ms: medians(beside),
      idealMs: medians(ideal),
    },
  };
}

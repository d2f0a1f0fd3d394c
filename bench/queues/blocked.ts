import { isOurQueue, type QueueSystemName } from "../peers/queues/system.ts";
import type { Jobs } from "../peers/queues/worker.ts";
import { say } from "../work.ts";
import { add, medianRatio, medians, type PartResult, type Rounds, turned, worst } from "./figures.ts";
import { among, type QueuePlan } from "./plan.ts";
import type { Site } from "./site.ts";

const limits = { concurrency: 128, perKey: 1 };
const systems: readonly QueueSystemName[] = [
  "tape-postgres",
  "tape-sqlite",
  "graphile-worker",
  "graphile-batched",
  "pg-boss",
];
/** A peer that is far behind is stopped, and its rate until then counts. */
const maxMs = 20_000;

/**
 * Ready jobs behind a backlog of two keys that are full: their holders last longer than the benchmark. Peers have their
 * ready jobs without a key, which is easier for them; ours are in 256 keys. Peers have one round: they are far from 1.
 *
 *   blocked   jobs a second with the backlog ÷ without it
 */
export async function measureBlocked(site: Site, plan: QueuePlan): Promise<PartResult> {
  const { blocked, ready } = plan.sizes.blocked;
  const [beside, alone]: [Rounds, Rounds] = [new Map(), new Map()];
  const measured = among(plan, systems);
  for (let round = 0; round < plan.rounds; round++)
    for (const system of turned(measured, round).filter((name) => round === 0 || isOurQueue(name)))
      for (const [rounds, backlog] of round % 2 === 0
        ? ([
            [beside, blocked],
            [alone, 0],
          ] as const)
        : ([
            [alone, 0],
            [beside, blocked],
          ] as const))
        await site.at(system, { limits }, async (place) => {
          const worker = await place.start("worker");
          const full = { key: "full-", keys: 2 };
          const jobs: Jobs[] = [
            { ...full, count: 2, holdMs: 3_600_000 },
            { ...full, count: backlog },
            { count: ready, ...(isOurQueue(system) && { key: "ready-", keys: 256 }) },
          ];
          await worker.ask({ ask: "enqueue", jobs }, 600_000);
          const drain = await worker.ask({ ask: "drain", jobs: ready, maxMs }, 120_000);
          add(rounds, system, drain.jobsPerSecond!);
          say(
            `blocked ${round + 1}/${plan.rounds} ${system}: ${Math.round(drain.jobsPerSecond!)} jobs/s behind ${backlog} blocked ones`,
          );
        });
  const ratio = (system: QueueSystemName): number | null => medianRatio(beside.get(system), alone.get(system));
  return {
    figures: { blocked: worst("min", [ratio("tape-sqlite"), ratio("tape-postgres")]) },
    beside: {
      ratios: Object.fromEntries(measured.map((system) => [system, ratio(system)])),
      perSecond: medians(beside),
      perSecondAlone: medians(alone),
    },
  };
}

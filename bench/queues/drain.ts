import type { QueueSystemName } from "../peers/queues/system.ts";
import { say } from "../work.ts";
import { add, bestOf, medianRatio, medians, type PartResult, type Rounds, turned } from "./figures.ts";
import { among, type QueuePlan } from "./plan.ts";
import type { Place, Site } from "./site.ts";

const concurrency = 128;
const systems: readonly QueueSystemName[] = [
  "tape-postgres",
  "pg-boss",
  "tape-sqlite",
  "dbos",
  "graphile-worker",
  "graphile-batched",
  "bullmq",
];

/**
 * One-step jobs, enqueued by 128 callers with a call for each while no process serves them, then drained 128 at a time.
 * The time is that of both, until all are durably finished; beside it each alone, and enqueuing in one go.
 *
 *   drainPostgres, drainSqlite   ours ÷ the best of DBOS and pg-boss
 */
export async function measureDrain(site: Site, plan: QueuePlan): Promise<PartResult> {
  const [both, enqueued, drained, bulk]: [Rounds, Rounds, Rounds, Rounds] = [
    new Map(),
    new Map(),
    new Map(),
    new Map(),
  ];
  const measured = among(plan, systems).filter((system) => site.notRun[system] === undefined);
  for (let round = 0; round < plan.rounds; round++)
    for (const system of turned(measured, round)) {
      const rates = await site.at(system, { limits: { concurrency } }, (place) => drain(place, system, plan));
      add(both, system, rates.both);
      add(enqueued, system, rates.enqueued);
      add(drained, system, rates.drained);
      add(bulk, system, rates.bulk);
      const shown = Object.entries(rates).map(([name, rate]) => `${name} ${Math.round(rate)}`);
      say(`drain ${round + 1}/${plan.rounds} ${system}, jobs/s: ${shown.join(", ")}`);
    }
  const peers = ["dbos", "pg-boss"] as const;
  const ours = both.get("tape-postgres");
  return {
    figures: {
      drainPostgres: medianRatio(ours, bestOf(both, peers)),
      drainSqlite: medianRatio(both.get("tape-sqlite"), bestOf(both, peers)),
    },
    beside: {
      perSecond: medians(both),
      enqueuedPerSecond: medians(enqueued),
      enqueuedInBulkPerSecond: medians(bulk),
      drainedPerSecond: medians(drained),
      drainedAlonePostgres: medianRatio(drained.get("tape-postgres"), bestOf(drained, peers)),
      drainedAloneSqlite: medianRatio(drained.get("tape-sqlite"), bestOf(drained, peers)),
      graphileWorker: medianRatio(ours, both.get("graphile-worker")),
      graphileBatched: medianRatio(ours, both.get("graphile-batched")),
      bullmq: medianRatio(ours, both.get("bullmq")),
    },
  };
}

async function drain(place: Place, system: QueueSystemName, plan: QueuePlan) {
  const { jobs, jobsOfDbos } = plan.sizes.drain;
  const count = system === "dbos" ? jobsOfDbos : jobs;
  const worker = await place.start("worker");
  const filled = await worker.ask({ ask: "enqueue", jobs: [{ count }], callers: concurrency }, 600_000);
  const drain = await worker.ask({ ask: "drain", jobs: count, settled: true }, 600_000);
  const starter = await place.start("starter");
  await worker.kill();
  const again = await starter.ask({ ask: "enqueue", jobs: [{ count }] }, 600_000);
  return {
    both: (count * 1000) / (filled.ms! + drain.ms!),
    enqueued: filled.jobsPerSecond!,
    drained: drain.jobsPerSecond!,
    bulk: again.jobsPerSecond!,
  };
}

import { measureBlocked } from "./queues/blocked.ts";
import { measureDepth } from "./queues/depth.ts";
import { measureDrain } from "./queues/drain.ts";
import { measureFair } from "./queues/fair.ts";
import type { PartResult } from "./queues/figures.ts";
import { measureKill } from "./queues/kill.ts";
import { type PartName, type QueuePlan, queuePlanOf } from "./queues/plan.ts";
import { Site } from "./queues/site.ts";
import { measureStart } from "./queues/start.ts";
import type { BenchOptions } from "./run.ts";
import { say } from "./work.ts";

const parts: Readonly<Record<PartName, (site: Site, plan: QueuePlan) => Promise<PartResult>>> = {
  drain: measureDrain,
  depth: measureDepth,
  blocked: measureBlocked,
  fair: measureFair,
  kill: measureKill,
  start: measureStart,
};

export const figureNames = [
  "drainPostgres",
  "drainSqlite",
  "depth",
  "blocked",
  "fair",
  "overLimit",
  "leaked",
  "startP99Ms",
] as const;

/** Queues beside those of others: see each part for its figures. */
export const benchQueues = ({ flags }: BenchOptions): Promise<object> => measureQueues(queuePlanOf(flags));

export async function measureQueues(plan: QueuePlan): Promise<Record<string, unknown>> {
  const site = await Site.open(plan.only);
  const figures: Record<string, number | null> = Object.fromEntries(figureNames.map((name) => [name, null]));
  const beside: Record<string, unknown> = {};
  try {
    for (const name of plan.parts) {
      const started = performance.now();
      const result = await parts[name](site, plan);
      Object.assign(figures, result.figures);
      beside[name] = result.beside;
      say(`${name}: ${JSON.stringify(result.figures)}, ${Math.round((performance.now() - started) / 1000)} s`);
    }
  } finally {
    await site.close();
  }
  return { ...figures, beside, notRun: site.notRun };
}

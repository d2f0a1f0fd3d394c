import { parseArgs } from "node:util";
import { isOurQueue, type QueueSystemName, queueSystemNames } from "../peers/queues/system.ts";

export const usage =
  "npm run bench -- queues [--json] [--full] [--rounds N] [--only NAME,…] [--parts drain,depth,blocked,fair,kill,start]";
export const partNames = ["drain", "depth", "blocked", "fair", "kill", "start"] as const;
export type PartName = (typeof partNames)[number];

export interface Sizes {
  readonly drain: { readonly jobs: number; readonly jobsOfDbos: number };
  readonly depth: { readonly runs: number; readonly keys: number; readonly claims: number; readonly beginsMs: number };
  readonly blocked: { readonly blocked: number; readonly ready: number };
  readonly fair: { readonly large: number; readonly keys: number; readonly each: number; readonly eachOfPeers: number };
  readonly kill: {
    readonly kills: number;
    readonly lanes: number;
    readonly killsOfPeers: number;
    readonly ttlSeconds: number;
  };
  readonly start: { readonly starts: number };
}

export interface QueuePlan {
  readonly only: readonly QueueSystemName[];
  readonly parts: readonly PartName[];
  readonly rounds: number;
  readonly sizes: Sizes;
}

/** The sizes of the bars. */
const full: Sizes = {
  drain: { jobs: 20_000, jobsOfDbos: 20_000 },
  depth: { runs: 1_000_000, keys: 10_000, claims: 20, beginsMs: 10_000 },
  blocked: { blocked: 100_000, ready: 50_000 },
  fair: { large: 100_000, keys: 99, each: 100, eachOfPeers: 100 },
  kill: { kills: 100, lanes: 8, killsOfPeers: 4, ttlSeconds: 3 },
  start: { starts: 1_000 },
};

/** About eight minutes. The first thousand jobs of a process are slower, with every system, so they are few. */
const usual: Sizes = {
  drain: { jobs: 10_000, jobsOfDbos: 1_000 },
  depth: { runs: 60_000, keys: 1_000, claims: 10, beginsMs: 3_000 },
  blocked: { blocked: 20_000, ready: 6_000 },
  fair: { large: 20_000, keys: 99, each: 50, eachOfPeers: 5 },
  kill: { kills: 100, lanes: 10, killsOfPeers: 2, ttlSeconds: 3 },
  start: { starts: 300 },
};

/** For a test of the benchmark itself. */
export const smallest: Sizes = {
  drain: { jobs: 100, jobsOfDbos: 10 },
  depth: { runs: 1_200, keys: 60, claims: 1, beginsMs: 60 },
  blocked: { blocked: 100, ready: 100 },
  fair: { large: 100, keys: 9, each: 10, eachOfPeers: 1 },
  kill: { kills: 1, lanes: 1, killsOfPeers: 0, ttlSeconds: 1 },
  start: { starts: 10 },
};

export function queuePlanOf(args: readonly string[]): QueuePlan {
  const { values } = parseArgs({
    args: [...args],
    options: {
      json: { type: "boolean" },
      full: { type: "boolean" },
      rounds: { type: "string" },
      only: { type: "string" },
      parts: { type: "string" },
    },
  });
  const only = (values.only?.split(",") ?? [...queueSystemNames]) as QueueSystemName[];
  const parts = (values.parts?.split(",") ?? [...partNames]) as PartName[];
  const rounds = Number(values.rounds ?? 3);
  const unknown = [
    ...only.filter((name) => !queueSystemNames.includes(name)),
    ...parts.filter((part) => !partNames.includes(part)),
  ];
  if (unknown.length > 0 || !(rounds >= 1)) throw new Error(`unknown: ${unknown.join(", ")}\nusage: ${usage}`);
  return { only, parts, rounds, sizes: values.full ? full : usual };
}

/** Those of the plan that a part is about, in this order. */
export const among = (plan: QueuePlan, names: readonly QueueSystemName[]): QueueSystemName[] =>
  names.filter((name) => plan.only.includes(name));

export const oursIn = (plan: QueuePlan): QueueSystemName[] => plan.only.filter(isOurQueue);

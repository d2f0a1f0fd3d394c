import { type Random, seededRandom } from "../src/base/random.ts";
import type { QueueOptions } from "../src/sdk/queue.ts";
import { chance, pick, times } from "./draw.ts";
import { type Fault, faultOf, type Rewind, rewindOf, type Shape } from "./plan-faults.ts";
import { caller } from "./plan-models.ts";
import { noNeighbours, type PlannedNeighbours } from "./plan-neighbours.ts";
import type { PlannedRun } from "./plan-runs.ts";
import { streamer } from "./plan-streams.ts";

export interface PlannedQueue {
  readonly name: string;
  /**
   * `fair`: its runs are alike and come at once, and no operator intervenes: only the turns of its keys matter. `busy`: short
   * runs of one key, which an operator takes over while they wait.
   */
  readonly style: "mixed" | "fair" | "busy";
  readonly options: QueueOptions;
}

/** A run of a queue: it goes inside, may wait outside, and goes inside again. */
export interface PlannedQueueRun {
  readonly id: string;
  readonly queue: string;
  readonly key: string;
  readonly priority: number;
  readonly atMs: number;
  readonly insideMs: number;
  readonly outsideMs: number | undefined;
  readonly delayMs: number | undefined;
  readonly expiresMs: number | undefined;
  readonly cancelAtMs: number | undefined;
  /** A unique key: later starts with it join the run. */
  readonly unique: string | undefined;
  /** A debounce key: starts with it are one run. */
  readonly debounce: string | undefined;
}

export interface PlannedQueues {
  readonly queues: readonly PlannedQueue[];
  readonly runs: readonly PlannedQueueRun[];
  /** An operator changes the concurrency. */
  readonly changes: readonly { readonly atMs: number; readonly queue: string; readonly concurrency: number }[];
  readonly pauses: readonly { readonly queue: string; readonly fromMs: number; readonly toMs: number }[];
  /** An operator takes over the first waiting run of the queue. */
  readonly takeovers: readonly { readonly atMs: number; readonly queue: string }[];
}

export const noQueues: PlannedQueues = { queues: [], runs: [], changes: [], pauses: [], takeovers: [] };
/** Share of plans with queues. */
const queueShare = 0.1;

interface QueuedPlan extends Shape {
  readonly runs: readonly PlannedRun[];
  readonly talk: unknown;
  readonly neighbours: PlannedNeighbours;
  readonly wallStep: unknown;
  readonly rewind: Rewind | undefined;
  readonly faults: readonly Fault[];
}

/** Shares of plans with queues in which replicas are connected to a server, and in which the store goes back. */
const remoteShare = 0.25;
const rewindShare = 0.2;

/** What few plans have, and what queues must survive. */
function withTroubles<P extends QueuedPlan>(random: Random, plan: P): P {
  const connected = chance(random, remoteShare);
  const remote = plan.remote.map((one) => one || (connected && chance(random, 0.7)));
  const faults = connected ? times(2, () => faultOf(random, { ...plan, remote })) : [];
  const rewind = chance(random, rewindShare) ? rewindOf(random) : undefined;
  // A wedged process is judged in a calm world. What neighbours, clients of a talker, readers of a stream and models
  // know might be forgotten.
  if (JSON.stringify(plan.runs).includes('"op":"trial"')) return plan;
  const isRemembered = plan.runs.some(({ id }) => id === streamer || id === caller);
  const keeps = plan.talk !== undefined || plan.neighbours !== noNeighbours || isRemembered;
  return { ...plan, remote, faults: [...plan.faults, ...faults], rewind: plan.rewind ?? (keeps ? undefined : rewind) };
}

/** Drawn from a generator of its own, so that plans without queues stay unchanged. */
export function withQueues<P extends QueuedPlan>(
  seed: number | string,
  plan: P,
): P & { readonly queues: PlannedQueues } {
  const random = seededRandom(`queues ${seed}`);
  // Rates are judged by the store's clock, which is not set here.
  if (!chance(random, queueShare) || plan.wallStep !== undefined) return { ...plan, queues: noQueues };
  const queues = times(1 + random.int(2), (k): PlannedQueue => {
    const style = pick(random, ["mixed", "mixed", "mixed", "fair", "fair", "busy"] as const);
    return { name: `queue-${k}`, style, options: style === "mixed" ? optionsOf(random) : { concurrency: 1 } };
  });
  const runs = queues.flatMap(({ name, style }) => times(5 + random.int(8), (k) => runOf(random, name, k, style)));
  const operated = queues.filter(({ style }) => style === "mixed").map(({ name }) => name);
  const busy = queues.filter(({ style }) => style === "busy");
  const some = <T>(share: number, count: number, make: () => T): T[] =>
    chance(random, share) && operated.length > 0 ? times(1 + random.int(count), make) : [];
  const queue = (): string => pick(random, operated);
  return {
    ...withTroubles(random, plan),
    queues: {
      queues,
      runs,
      changes: some(0.4, 3, () => ({ atMs: random.int(15_000), queue: queue(), concurrency: 1 + random.int(4) })),
      pauses: some(0.3, 2, () => {
        const fromMs = random.int(10_000);
        return { queue: queue(), fromMs, toMs: fromMs + 500 + random.int(6_000) };
      }),
      takeovers: [
        ...some(0.6, 5, () => ({ atMs: random.int(9_000), queue: queue() })),
        ...busy.flatMap(({ name }) => times(4, () => ({ atMs: random.int(1_500), queue: name }))),
      ],
    },
  };
}

function optionsOf(random: Random): QueueOptions {
  const paced = chance(random, 0.3);
  const rate = { limit: 1 + random.int(4), per: 4_000, burst: 1 + random.int(2) };
  return {
    concurrency: 1 + random.int(3),
    ...(chance(random, 0.3) && { perWorker: 1 + random.int(2) }),
    ...(paced && { rate }),
    ...(chance(random, 0.5) && { perKey: chance(random, 0.3) ? { rate } : { concurrency: 1 } }),
    counts: chance(random, 0.25) ? "started" : "running",
  };
}

function runOf(random: Random, queue: string, k: number, style: PlannedQueue["style"]): PlannedQueueRun {
  const alike = style !== "mixed";
  const plain = alike || chance(random, 0.6);
  const some = <T>(share: number, make: () => T): T | undefined =>
    !plain && chance(random, share) ? make() : undefined;
  const debounce = some(0.45, () => `${queue} debounced`);
  return {
    id: `${queue}-run-${k}`,
    queue,
    key: style === "busy" ? "a" : pick(random, ["a", "a", "b", "c"]),
    priority: alike || chance(random, 0.7) ? 5 : 1 + random.int(9),
    atMs: random.int(alike ? 200 : 6_000),
    insideMs: style === "busy" ? 20 : pick(random, [0, 20, 300, 2_000]),
    outsideMs: some(0.6, () => 2 * random.int(4_000)),
    delayMs: debounce === undefined ? some(0.25, () => random.int(5_000)) : undefined,
    expiresMs: debounce === undefined ? some(0.25, () => 200 + random.int(6_000)) : undefined,
    cancelAtMs: some(0.25, () => random.int(15_000)),
    unique: debounce === undefined ? some(0.3, () => `${queue} unique`) : undefined,
    debounce,
  };
}

import { type Random, seededRandom } from "../src/base/random.ts";
import { withCodec } from "./codec.ts";
import { chance, pick, times } from "./draw.ts";
import {
  actionsOf,
  type PlannedAction,
  type PlannedSchedule,
  type PlannedSingleton,
  type PlannedValueWrite,
  scheduleOf,
  valueWritesOf,
} from "./plan-actions.ts";
import { type PlannedBuilds, withBuilds } from "./plan-builds.ts";
import { clockOf, type Fault, faultOf, type Rewind, rewindOf, rightClock, type WrongClock } from "./plan-faults.ts";
import { withGenerations } from "./plan-generations.ts";
import { withModels } from "./plan-models.ts";
import { type PlannedNeighbours, withNeighbours } from "./plan-neighbours.ts";
import { type PlannedObjects, withObjects } from "./plan-objects.ts";
import { type PlannedQueues, withQueues } from "./plan-queues.ts";
import { type PlannedRetention, withRetention } from "./plan-retention.ts";
import { type PlannedRun, type PlannedSignal, runOf, signalsOf, withEndsInDoubt, withLanes } from "./plan-runs.ts";
import { withScopes } from "./plan-scopes.ts";
import { withPausedSenders } from "./plan-senders.ts";
import { type PlannedServerless, withServerless } from "./plan-serverless.ts";
import { type PlannedShards, withShards } from "./plan-shards.ts";
import { type PlannedSink, withSink } from "./plan-sinks.ts";
import { withStreams } from "./plan-streams.ts";
import { type PlannedTalk, withTalk } from "./plan-talk.ts";
import { type PlannedCallerStart, withTransactions } from "./plan-transactions.ts";
import { withOutages, withTrials } from "./plan-trials.ts";
import {
  type GuardedSignal,
  type PlannedUnstarted,
  type StrangerAction,
  strangersOf,
  unstartedOf,
  type WallStep,
  withForks,
  withGuarded,
  withWallStep,
} from "./plan-visitors.ts";
import { sizes } from "./size.ts";

/** Everything that a seed decides in advance. */
export interface Plan {
  readonly seed: number | string;
  readonly replicas: number;
  /** Which replicas are connected to a server instead of opening the store themselves. */
  readonly remote: readonly boolean[];
  readonly clocks: readonly WrongClock[];
  readonly ttlMs: number;
  /** Longest travel time of requests to the store and of responses. */
  readonly travelMs: number;
  /** Share of hints that are lost. */
  readonly hintLoss: number;
  readonly runs: readonly PlannedRun[];
  readonly signals: readonly PlannedSignal[];
  readonly schedules: readonly PlannedSchedule[];
  readonly values: readonly PlannedValueWrite[];
  readonly singleton: PlannedSingleton | undefined;
  readonly actions: readonly PlannedAction[];
  /** What another tenant tries with our numbers, names and secrets. */
  readonly strangers: readonly StrangerAction[];
  /** Signals to a gate with one approver, which takes numbers only. */
  readonly guarded: readonly GuardedSignal[];
  readonly neighbours: PlannedNeighbours;
  readonly unstarted: PlannedUnstarted | undefined;
  /** A run that clients talk to. */
  readonly talk: PlannedTalk | undefined;
  /** Runs that a caller starts in its own transactions. */
  readonly callers: readonly PlannedCallerStart[];
  /** The wall clock of the store's machine is set. */
  readonly wallStep: WallStep | undefined;
  readonly queues: PlannedQueues;
  /** Calls of an object. */
  readonly objects: PlannedObjects;
  /** Alarms and wake-ups instead of loops. */
  readonly serverless: PlannedServerless | undefined;
  /** A receiver of events. */
  readonly sink: PlannedSink | undefined;
  /** A singleton in shards. */
  readonly shards: PlannedShards | undefined;
  /** Ended runs that are archived and deleted. */
  readonly retention: PlannedRetention | undefined;
  /** Two builds of one program. */
  readonly builds: PlannedBuilds | undefined;
  /** The replicas encrypt payloads. */
  readonly codec: boolean;
  readonly faults: readonly Fault[];
  readonly rewind: Rewind | undefined;
  /** No faults happen from here on. */
  readonly healAtMs: number;
  /** false: crashed and paused processes stay so, the simulation is cut off, and only safety is judged. */
  readonly heals: boolean;
  /** Whether a simulated operator resolves effects in doubt. */
  readonly resolver: boolean;
}

export function planOf(seed: number | string): Plan {
  const random = seededRandom(`plan ${seed}`);
  const size = sizes.find(({ share }) => chance(random, share))!;
  const replicas = pick(random, size.replicas);
  const ttlMs = 12_000 + random.int(3) * 6_000;
  const connected = chance(random, 0.12);
  const remote = times(replicas, () => connected && chance(random, 0.7));
  const runs = times(1 + random.int(size.runs), (k) => runOf(random, `run-${k}`, size));
  const singleton = some(random, 0.07, () => ({ everyMs: 200 + random.int(1_500), throws: chance(random, 0.2) }));
  const skewed = chance(random, 0.15);
  const shape = { replicas, remote, ttlMs, singleton };
  const faultCount = chance(random, 0.1) ? 0 : 1 + random.int(size.faults);
  const plan = {
    seed,
    ...shape,
    clocks: times(replicas, () => (skewed ? clockOf(random, size.lastsMs) : rightClock)),
    travelMs: pick(random, [0, 2, 40, 400]),
    hintLoss: pick(random, [0, 0, 0.3, 1]),
    runs: withEndsInDoubt(seed, withLanes(seed, runs)),
    signals: runs.flatMap((run) => signalsOf(random, run)),
    schedules: some(random, 0.05, () => [scheduleOf(random)]) ?? [],
    values: some(random, 0.06, () => valueWritesOf(random)) ?? [],
    actions:
      some(random, singleton === undefined ? 0.1 : 0.7, () => actionsOf(random, runs, singleton !== undefined)) ?? [],
    strangers: strangersOf(seed),
    unstarted: unstartedOf(seed),
    faults: times(faultCount, () => faultOf(random, shape)),
    rewind: some(random, 0.05, () => rewindOf(random)),
    // Late enough for an early paused holder to be replaced: the heal resumes every process.
    healAtMs: ttlMs + 12_000 + random.int(size.lastsMs),
    heals: !chance(random, 0.12),
    resolver: chance(random, 0.75),
  };
  const visited = withWallStep(seed, withGuarded(seed, withForks(seed, withNeighbours(seed, plan))));
  const talking = withTalk(seed, withTransactions(seed, withPausedSenders(seed, visited)));
  const streaming = withModels(seed, withStreams(seed, withOutages(seed, withTrials(seed, talking))));
  const hosted = withServerless(seed, withObjects(seed, withQueues(seed, streaming)));
  // A fan-out is a process that always runs.
  const sunk = hosted.serverless === undefined ? withSink(seed, hosted) : { ...hosted, sink: undefined };
  const built = withBuilds(seed, withRetention(seed, withCodec(seed, withShards(seed, sunk))));
  return built.builds === undefined ? withGenerations(seed, withScopes(seed, built)) : built;
}

const some = <T>(random: Random, share: number, make: () => T): T | undefined =>
  chance(random, share) ? make() : undefined;

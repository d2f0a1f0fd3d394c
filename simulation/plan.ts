import { type Random, seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";
import { clockOf, type Fault, faultOf, type Rewind, rewindOf, rightClock, type WrongClock } from "./plan-faults.ts";
import { type PlannedNeighbours, withNeighbours } from "./plan-neighbours.ts";
import {
  actionsOf,
  type PlannedAction,
  type PlannedSchedule,
  type PlannedSingleton,
  type PlannedValueWrite,
  scheduleOf,
  valueWritesOf,
} from "./plan-others.ts";
import { type PlannedRun, type PlannedSignal, runOf, signalsOf, withLanes } from "./plan-runs.ts";
import {
  type GuardedSignal,
  type PlannedUnbegun,
  type StrangerDeed,
  strangersOf,
  unbegunOf,
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
  /** Which of them are connected to a server instead of having the store themselves. */
  readonly remote: readonly boolean[];
  readonly clocks: readonly WrongClock[];
  readonly ttlMs: number;
  /** Requests to the store and answers travel up to so long. */
  readonly travelMs: number;
  /** The share of hints that get lost. */
  readonly deafness: number;
  readonly runs: readonly PlannedRun[];
  readonly signals: readonly PlannedSignal[];
  readonly schedules: readonly PlannedSchedule[];
  readonly values: readonly PlannedValueWrite[];
  readonly singleton: PlannedSingleton | undefined;
  readonly deeds: readonly PlannedAction[];
  /** What another tenant tries with the numbers, names and secrets of ours. */
  readonly strangers: readonly StrangerDeed[];
  /** Signals to a gate that is for one person and takes numbers only. */
  readonly guarded: readonly GuardedSignal[];
  readonly neighbours: PlannedNeighbours;
  readonly unbegun: PlannedUnbegun | undefined;
  /** Somebody sets the wall clock of the store's machine. */
  readonly wallStep: WallStep | undefined;
  readonly faults: readonly Fault[];
  readonly rewind: Rewind | undefined;
  /** From here on nothing goes wrong any more. */
  readonly healAtMs: number;
  /** false: the dead stay dead and the stopped stopped, and it is cut off at some moment: only safety is judged. */
  readonly heals: boolean;
  /** Whether somebody looks after what only a person can settle. */
  readonly person: boolean;
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
  const struck = chance(random, 0.1) ? 0 : 1 + random.int(size.faults);
  const plan = {
    seed,
    ...shape,
    clocks: times(replicas, () => (skewed ? clockOf(random, size.lastsMs) : rightClock)),
    travelMs: pick(random, [0, 2, 40, 400]),
    deafness: pick(random, [0, 0, 0.3, 1]),
    runs: withLanes(seed, runs),
    signals: runs.flatMap((run) => signalsOf(random, run)),
    schedules: some(random, 0.05, () => [scheduleOf(random)]) ?? [],
    values: some(random, 0.06, () => valueWritesOf(random)) ?? [],
    deeds:
      some(random, singleton === undefined ? 0.1 : 0.7, () => actionsOf(random, runs, singleton !== undefined)) ?? [],
    strangers: strangersOf(seed),
    unbegun: unbegunOf(seed),
    faults: times(struck, () => faultOf(random, shape)),
    rewind: some(random, 0.05, () => rewindOf(random)),
    // Not before somebody who was stopped early has been replaced: the heal lets everybody go on.
    healAtMs: ttlMs + 12_000 + random.int(size.lastsMs),
    heals: !chance(random, 0.12),
    person: chance(random, 0.75),
  };
  return withWallStep(seed, withGuarded(seed, withForks(seed, withNeighbours(seed, plan))));
}

const some = <T>(random: Random, share: number, make: () => T): T | undefined =>
  chance(random, share) ? make() : undefined;

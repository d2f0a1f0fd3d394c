import { type Random, seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";
import type { RosterTask, RosterWork } from "./objects.ts";
import type { PlannedRun } from "./plan-runs.ts";

/** A call of the object by a client. */
export interface PlannedObjectCall {
  readonly id: string;
  readonly key: string;
  readonly atMs: number;
  readonly work: RosterWork;
  /** The client waits for the result. */
  readonly waits: boolean;
  readonly cancelAtMs: number | undefined;
}

export interface PlannedObjects {
  readonly calls: readonly PlannedObjectCall[];
  /** Reads of the state, which wait for no handler. */
  readonly reads: readonly { readonly atMs: number; readonly key: string }[];
}

export const noObjects: PlannedObjects = { calls: [], reads: [] };
/** Whether a plan has an object at all. */
export const usesObjects = ({ objects }: { readonly objects: PlannedObjects }): boolean => objects.calls.length > 0;

/** The run that calls the object. */
const caller = "object-caller";

/** The plan without its object, and without the run that calls it. */
export const withoutObjects = <P extends { readonly runs: readonly PlannedRun[] }>(plan: P): P => ({
  ...plan,
  runs: plan.runs.filter(({ id }) => id !== caller),
  objects: noObjects,
});

/** Share of plans with an object. */
const objectShare = 0.07;
/** A handler calls keys to the right of its own only, so that no two wait for each other. */
const keys = ["a", "b", "c"] as const;

/** Drawn from a generator of its own, so that plans without objects stay unchanged. */
export function withObjects<P extends { readonly runs: readonly PlannedRun[] }>(
  seed: number | string,
  plan: P,
): P & { readonly objects: PlannedObjects } {
  const random = seededRandom(`objects ${seed}`);
  if (!chance(random, objectShare)) return { ...plan, objects: noObjects };
  const calls = times(4 + random.int(6), (k): PlannedObjectCall => {
    const key = pick(random, ["a", "a", "a", "b", "c"]);
    const atMs = random.int(5_000);
    return {
      id: `roster-${k}`,
      key,
      atMs,
      work: workOf(random, key, `call ${k}`),
      waits: chance(random, 0.5),
      cancelAtMs: chance(random, 0.12) ? atMs + random.int(6_000) : undefined,
    };
  });
  const reads = times(3 + random.int(6), () => ({ atMs: random.int(14_000), key: pick(random, ["a", "a", "b"]) }));
  const runs = chance(random, 0.4) ? [...plan.runs, callerOf(random)] : plan.runs;
  return { ...plan, runs, objects: { calls, reads } };
}

function workOf(random: Random, key: string, mark: string, depth = 1): RosterWork {
  const further = keys.filter((one) => one > key);
  const tasks = times(1 + random.int(4), (k): RosterTask => {
    const what = pick(random, ["set", "set", "set", "look", "step", "sleep", "sleep", "call", "nest"] as const);
    if (what === "sleep") return { do: "sleep", ms: pick(random, [100, 900, 3_000, 6_000]) };
    if (what !== "call") return { do: what };
    if (depth === 0 || further.length === 0) return { do: "set" };
    const to = pick(random, further);
    return { do: "call", key: to, work: workOf(random, to, `${mark}/${k}`, depth - 1) };
  });
  return { mark, tasks: chance(random, 0.15) ? [...tasks, { do: "fail" }] : tasks };
}

/** A run that calls the object. */
function callerOf(random: Random): PlannedRun {
  const ops = times(1 + random.int(3), (k) => {
    const key = pick(random, keys);
    return { op: "object" as const, key, work: workOf(random, key, `caller ${k}`) };
  });
  return {
    id: caller,
    workflow: "once",
    program: { ops, attempts: 1 },
    atMs: random.int(4_000),
    cancelAtMs: undefined,
    usd: undefined,
    again: undefined,
  };
}

import type { Evidence } from "../../simulation/evidence.ts";
import { rosterRuns } from "../../simulation/invariants/objects.ts";
import type { RosterTask, RosterTrace } from "../../simulation/objects.ts";
import type { PlannedObjects } from "../../simulation/plan-objects.ts";

const call = (n: number, tasks: readonly RosterTask[]): PlannedObjects["calls"][number] => ({
  id: `roster-${n}`,
  key: "a",
  atMs: 100 * n,
  work: { mark: `call ${n}`, tasks },
  waits: n === 0,
  cancelAtMs: undefined,
});

/** Handlers of one key, of which the first sleeps between two changes. */
export const eventfulObjects: PlannedObjects = {
  calls: [
    call(0, [{ do: "set" }, { do: "sleep", ms: 3_000 }, { do: "look" }, { do: "set" }]),
    call(1, [{ do: "nest" }, { do: "set" }]),
    call(2, [{ do: "set" }, { do: "call", key: "b", work: { mark: "child", tasks: [{ do: "set" }] } }, { do: "fail" }]),
    call(3, [{ do: "look" }]),
  ],
  reads: [{ atMs: 16_000, key: "a" }],
};

type Spoil = (world: Evidence) => Evidence;

/** The outcome of a handler becomes another. */
const outcome =
  (run: string, change: (trace: RosterTrace) => unknown, status?: "FAILED"): Spoil =>
  (world) => ({
    ...world,
    runs: world.runs.map((one) =>
      one.id === run ? { ...one, status: status ?? one.status, outcome: change(one.outcome as RosterTrace) } : one,
    ),
  });

/** Changes of the eventful world that break the invariant of objects, each in another part of it. */
export const spoiledObjects: Readonly<Record<string, Spoil>> = {
  "a handler saw a change in the middle": outcome("roster-0", (trace) => trace.with(2, ["call 9.0"])),
  "a handler found an old state": outcome("roster-3", () => [[], []]),
  "a handler failed with a conflict": outcome("roster-3", () => ({ code: "TAPE_VERSION_CONFLICT" }), "FAILED"),
  "a handler that throws completed": (world) => ({
    ...world,
    runs: world.runs.map((one) => (one.id === "roster-2" ? { ...one, status: "COMPLETED", outcome: [[]] } : one)),
  }),
  "a client got another result": (world) => ({
    ...world,
    objectAnswers: world.objectAnswers.map((one) => ({ ...one, trace: [["call 9.0"]] })),
  }),
  "a client read a state that was over": (world) => ({
    ...world,
    objectReads: world.objectReads.map((one) => ({ ...one, state: one.state.slice(0, 1) })),
  }),
  "a change is lost": (world) => {
    const ran = rosterRuns(world).find(({ id }) => id === "roster-1")!.journal;
    return { ...world, runs: world.runs.filter(({ journal }) => journal !== ran) };
  },
};

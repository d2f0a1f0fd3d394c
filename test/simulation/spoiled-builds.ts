import type { Evidence } from "../../simulation/evidence.ts";
import type { PlannedBuilds } from "../../simulation/plan-builds.ts";

/** Two replicas of different builds, each with runs of its own; the processes of one build are gone for a while. */
export const calmBuilds: PlannedBuilds = {
  of: ["a", "b"],
  runs: [0, 1, 2, 3].map((k) => ({
    id: `pinned-${k}`,
    atMs: 500 + 600 * k,
    work: { agrees: false, restMs: [2_000, 9_000], workMs: 500 },
  })),
  current: { atMs: 12_000, build: "a" },
  moves: [{ atMs: 6_000, from: "a", to: "b" }],
  outage: { atMs: 7_000, build: "b", forMs: 9_000 },
};

type Spoil = (world: Evidence) => Evidence;

/** For each invariant of builds, changes of the evidence that break it. */
export const spoiledBuilds: readonly (readonly [string, Spoil])[] = [
  // A process of the other build got a term.
  [
    "pinnedStays",
    (world) => {
      const { terms, outages } = world.builds!;
      const journal = world.runs.find(({ workflow }) => workflow === "pinned")!.journal;
      const other = (build: "a" | "b") => (build === "a" ? "b" : "a");
      return {
        ...world,
        builds: {
          outages,
          terms: terms.map((one) => (one.journal === journal ? { ...one, build: other(one.build) } : one)),
        },
      };
    },
  ],
  ["pinnedRunsEnd", (world) => withRuns(world, { status: "STUCK" })],
  ["pinnedRunsEnd", (world) => withRuns(world, { outcome: ["c"] })],
];

const withRuns = (world: Evidence, change: object): Evidence => ({
  ...world,
  runs: world.runs.map((run) => (run.workflow === "pinned" ? { ...run, ...change } : run)),
});

import type { Evidence } from "../../simulation/evidence.ts";
import type { PlannedShards } from "../../simulation/plan-shards.ts";
import type { ShardEvidence } from "../../simulation/shard-work.ts";

/** Two replicas share four shards, and one of them leaves for a while. */
export const calmShards: PlannedShards = {
  ...{ of: 4, everyMs: 1_000, max: [undefined, undefined], joinAtMs: [0, 500], pauseAtShedMs: undefined },
  changes: [{ atMs: 30_000, replica: 1, what: "leave", forMs: 4_000 }],
};

const changed = (world: Evidence, change: (shards: ShardEvidence) => Partial<ShardEvidence>): Evidence => ({
  ...world,
  shards: { ...world.shards!, ...change(world.shards!) },
});

/** For each invariant of shards, changes of the evidence that break it. */
export const spoiledShards: readonly (readonly [string, (world: Evidence) => Evidence])[] = [
  // The first holder works on after the shard has a new one.
  [
    "oneOwnerForAShard",
    (world) =>
      changed(world, ({ events }) => {
        const moved = events.find((one) => one.what === "start" && one.token > 1n)!;
        const first = events.find((one) => one.what === "worked" && one.shard === moved.shard)!;
        return { events: [...events, { ...first, at: moved.at + 2_000 }] };
      }),
  ],
  ["oneOwnerForAShard", (world) => changed(world, ({ events }) => ({ events: [events[0]!, events[0]!] }))],
  [
    "shardsAreHeld",
    (world) => changed(world, ({ checks }) => ({ checks: checks.map((check) => ({ ...check, unheld: [2] })) })),
  ],
  [
    "shardsAreFair",
    (world) =>
      changed(world, ({ checks }) => ({
        checks: checks.map((check) => ({
          ...check,
          held: check.held.map((one, k) => ({ ...one, shards: k === 0 ? 3 : 1 })),
        })),
      })),
  ],
];

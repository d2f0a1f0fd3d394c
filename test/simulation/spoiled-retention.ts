import type { Evidence } from "../../simulation/evidence.ts";
import type { PlannedRetention } from "../../simulation/plan-retention.ts";
import type { RetentionEvidence } from "../../simulation/retainers.ts";

/** Two trees, one with a child, that a sweeper without faults archives and deletes. */
export const eventfulRetention: PlannedRetention = {
  runs: [
    { atMs: 100, workflow: "brief", children: 1 },
    { atMs: 200, workflow: "brief", children: 0 },
    { atMs: 300, workflow: "kept", children: 1, erasure: { afterMs: 100, steps: 0, crash: false } },
  ],
  ...{ sweepers: 1, batch: 1, everyMs: 700, slowMs: 10, failShare: 0, lossShare: 0, faults: [] },
};

const changed = (world: Evidence, change: (of: RetentionEvidence) => Partial<RetentionEvidence>): Evidence => ({
  ...world,
  retention: { ...world.retention!, ...change(world.retention!) },
});

/** For each invariant of retention, a change of the evidence that breaks it. */
export const spoiledRetention: Readonly<Record<string, (world: Evidence) => Evidence>> = {
  nothingLostUnarchived: (world) =>
    changed(world, ({ files }) => ({
      files: new Map([...files].map(([name, text]) => [name, text.replaceAll('"data":{', '"data":{ ')])),
    })),
  erasedHoldsNothing: (world) =>
    changed(world, ({ texts }) => ({ texts: new Map([...texts.keys()].map((id) => [id, "payload retained~2"])) })),
  tombstonesStay: (world) => changed(world, ({ tombstones }) => ({ restarted: [...tombstones.keys()].slice(0, 1) })),
  treesGoWhole: (world) => changed(world, ({ left }) => ({ left: new Set([...left, "retained-0"]) })),
  policiesHold: (world) =>
    changed(world, ({ ended }) => ({ ended: ended.map((run) => ({ ...run, keptMs: 3_600_000 })) })),
  sweepersAreFenced: (world) => changed(world, ({ prunes }) => ({ prunes: [...prunes, { ...prunes[0]!, token: 0n }] })),
};

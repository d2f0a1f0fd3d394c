import type { Bug } from "../bug.ts";

export const generationBugs: readonly Bug[] = [
  {
    name: "an unused signal is left behind",
    planted: "a run that continues as new carries no signal into its next generation",
    why: "Temporal leaves what a workflow has not drained behind: the new run has an inbox of its own.",
    patches: [
      {
        file: "engine/drive/continuing.ts",
        find: "notes: waits.unused.map(({ seq }) => seq),",
        replace: "notes: [],",
      },
    ],
    detectedBy: ["signalsAreNotSkipped"],
    kind: "with generations",
    within: 200,
  },
  {
    name: "uuid repeats in the next generation",
    planted: "random values are drawn from the run and its input, without the generation",
    why: "The seed of a run is enough while its code runs once. A session continues with the input that it began with.",
    patches: [
      {
        file: "engine/context/context.ts",
        find: "if (generation.number > 1) return fingerprint([...drawn, lane.path, generation.number]);",
        replace: "if (generation.number > 1) return fingerprint([...drawn, ...(lane.path === '' ? [] : [lane.path])]);",
      },
    ],
    detectedBy: ["drawsAreUnique"],
    kind: "with generations",
    within: 200,
  },
  {
    name: "positions restart: two effects, one key",
    planted: "the idempotency key of an effect counts its position from the start of its lane",
    why: "A counter of calls starts at zero with the code, and the upstream takes the second payment for the first.",
    patches: [
      {
        file: "engine/effects/inline.ts",
        find: "idempotencyKeyOf = (drive: DriveHandle, pos: number): string => `",
        replace: "idempotencyKeyOf = (drive: DriveHandle, at: number, pos = at % 1_000_000): string => `",
      },
    ],
    detectedBy: ["keysAreStable"],
    kind: "with generations",
    within: 200,
  },
  {
    name: "every wake-up reads the whole history",
    planted: "a drive reads the journal from its first record on, whatever generation the run is in",
    why: "The fold skips what came before, so the result is right: until the history has a million records.",
    patches: [
      {
        file: "engine/drive/generation.ts",
        find: "  const [[created], generation] = await Promise.all([\n    store.read.journal(tenant, target, { from: 1, limit: 1 }),\n    since(lease.begins),\n  ]);",
        replace:
          "  const whole = await since(1);\n  const [[created], generation] = [whole, whole.filter(({ seq }) => seq >= lease.begins)];",
      },
    ],
    detectedBy: ["wakeIsBounded"],
    kind: "with generations",
    within: 200,
  },
];

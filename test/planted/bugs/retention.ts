import type { Bug } from "../bug.ts";

export const retentionBugs: readonly Bug[] = [
  {
    name: "prune before archive",
    planted: "trees are read, deleted from the store, and then written to the archive",
    why: "The transaction is short and the archive is slow: delete first, upload later. The upload fails, or its process dies.",
    patches: [
      {
        file: "retention/pass.ts",
        find: "    const { sha256, bytes } = await archiveTrees(ops, this.#settings.archive, this.#header, trees, {\n",
        replace:
          "    const read: Uint8Array[] = [];\n    const later = { put: async (_: string, body: AsyncIterable<Uint8Array>) => { for await (const block of body) read.push(block); }, has: async () => true, get: async () => undefined };\n    const { sha256, bytes } = await archiveTrees(ops, later, this.#header, trees, {\n",
      },
      {
        file: "retention/pass.ts",
        find: "    this.done = done;\n    counts.bytes += bytes;\n",
        replace:
          "    this.done = done;\n    await this.#settings.archive.put(name, (async function* () { yield* read; })());\n    counts.bytes += bytes;\n",
      },
    ],
    detectedBy: ["nothingLostUnarchived"],
    kind: "with retention",
    within: 200,
  },
  {
    name: "the policy of another workflow",
    planted: "runs of every workflow are dated by the first setting of the operator",
    why: "One setting in every test. With a second workflow, its runs are deleted by the shorter of the two.",
    patches: [
      {
        file: "model/retention.ts",
        find: "Object.hasOwn(workflows, root.workflow) ? workflows[root.workflow] : undefined;",
        replace: "Object.values(workflows)[0];",
      },
    ],
    detectedBy: ["policiesHold"],
    kind: "with retention",
    within: 50,
  },
  {
    name: "two sweepers",
    planted: "the transaction that deletes does not compare the fence of the sweeper's lease",
    why: "The lease was held when the pass began. A process that was paused since then deletes what its successor archives again.",
    patches: [
      {
        file: "store/sql/plans/retention.ts",
        find: "  yield* assertHolder(fence);\n  yield* checkpointPlan(fence, checkpoint);\n  const { tenant } = fence;\n",
        replace:
          '  const { tenant, journal, token, nonce } = fence;\n  const held = yield* queryRow("fence.name", { tenant, journal, token, nonce });\n  if (held !== undefined) yield* checkpointPlan(fence, checkpoint);\n',
      },
    ],
    detectedBy: ["sweepersAreFenced", "nothingLostUnarchived"],
    kind: "with retention",
    within: 500,
  },
  {
    name: "an archive that forgets an erasure",
    planted: "the transaction that deletes compares the numbers of records, and not whether a run was erased since",
    why: "Records are only appended, so equal numbers meant an equal tree. An erasure between the archive and the delete changes no number.",
    patches: [
      {
        file: "store/sql/plans/retention.ts",
        find: "runs.flatMap(({ journal, erased }) => (erased ?",
        replace: "runs.flatMap(({ journal, erased }) => (erased && journal < 0 ?",
      },
    ],
    detectedBy: ["erasedHoldsNothing", "nothingLostUnarchived"],
    kind: "with retention",
    within: 500,
  },
  {
    name: "an erasure without the inbox",
    planted: "the journals of an erased run are rewritten, and its inbox is left",
    why: "An inbox is stored under the negative number of its journal. A list of journals does not have it, and the results of children are there.",
    patches: [
      {
        file: "store/sql/plans/erase-records.ts",
        find: "journal < 0 ? [-own] : [own, -own]",
        replace: "journal < 0 ? [-own] : [own]",
      },
    ],
    detectedBy: ["erasedHoldsNothing"],
    kind: "with retention",
    within: 50,
  },
];

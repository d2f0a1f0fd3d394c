// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is the text of the source, not a template
import type { Bug } from "../bug.ts";

export const shardBugs: readonly Bug[] = [
  {
    name: "a shard is stolen from a live holder",
    planted:
      "a replica with fewer than its share takes shards from one that has more, and does not wait for it to shed",
    why: "Consumer groups rebalance like this: the new owner begins, and the old one learns of it at its next heartbeat.",
    patches: [
      {
        file: "host/singleton/distribution.ts",
        find: "    taken.add(index);\n    held.set(",
        replace:
          "    const isRich = shards.filter((one) => one.lease.owner === lease.owner).length > Math.ceil(of / 2);\n    if (!isRich || lease.owner === own) taken.add(index);\n    held.set(",
      },
      {
        file: "host/singleton/sharded-singleton.ts",
        find: ": keeper.acquireOrSteal(name, singleton.acquireOptions));",
        replace: ': keeper.takeover(name, "balance", "uneven", singleton.acquireOptions));',
      },
    ],
    detectedBy: ["oneOwnerForAShard"],
    kind: "with shards",
    within: 500,
  },
  {
    name: "a replica at its share never takes a free shard",
    planted: "a replica takes free shards up to its share, and leaves the rest to the others",
    why: "The shares of all replicas add up. But one of them may be full, or has died without a shard and is still listed.",
    patches: [
      {
        file: "host/singleton/sharded-singleton.ts",
        find: "    if (this.#held.size >= this.#max) return false;",
        replace: "    if (this.#held.size >= 0) return false;",
      },
    ],
    detectedBy: ["shardsAreHeld"],
    kind: "with shards",
    within: 500,
  },
  {
    name: "dead owners count as live for a minute",
    planted:
      "a replica counts as live, and keeps its shards, as long as its report is listed, also if they have expired",
    why: "Presence is one list, and the list has a time-out. Until it is over, no replica takes the place of the dead replica.",
    patches: [
      {
        file: "host/singleton/distribution.ts",
        find: '    if (lease.state !== "HELD" || lease.owner === null) continue;',
        replace:
          '    if (lease.owner === null || (lease.state !== "HELD" && !reported.includes(lease.owner))) continue;',
      },
      {
        file: "host/singleton/sharded-singleton.ts",
        find: "#removeReports([...reportedAt.keys()].filter((one) => this.#dead.has(one)))",
        replace: "#removeReports([])",
      },
    ],
    detectedBy: ["shardsAreFair", "shardsAreHeld"],
    kind: "with shards",
    within: 500,
  },
];

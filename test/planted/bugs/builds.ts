import type { Bug } from "../bug.ts";

export const buildBugs: readonly Bug[] = [
  {
    name: "takeover ignores the build",
    planted: "work that waits is left to its build, but a run whose holder died is taken over by any process",
    why: "Routing by task queue covers what is queued. What a dead worker held is found by another query.",
    patches: [
      {
        file: "store/sqlite/sql/leases.sql",
        find: "and (:kind is null or l.kind = :kind) and (l.build is null or l.build = :build)\n  and (l.workflow <> ''",
        replace:
          "and (:kind is null or l.kind = :kind) and (:build is null or :build = :build)\n  and (l.workflow <> ''",
      },
      {
        file: "store/sql/plans/claim.ts",
        find: '  const take = { claimant, expect: "free_or_expired", ...(build !== undefined && { build }) } as const;\n',
        replace:
          '  const of = stale ? (lease.build ?? build) : build;\n  const take = { claimant, expect: "free_or_expired", ...(of !== undefined && { build: of }) } as const;\n',
      },
    ],
    detectedBy: ["pinnedStays"],
    kind: "with builds",
    within: 200,
  },
];

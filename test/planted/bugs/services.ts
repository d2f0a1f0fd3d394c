import type { Bug } from "../bug.ts";

export const serviceBugs: readonly Bug[] = [
  {
    name: "unconditional swap",
    planted: "a value is written whatever version its writer has read",
    why: "Read, change, write: the lost update, as old as shared memory.",
    patches: [
      {
        file: "store/sql/plans/intake.ts",
        find: 'typeof when === "object" && when.version !== version)',
        replace: 'typeof when === "object" && when.version < 0)',
      },
    ],
    detectedBy: ["valuesAreLinearizable"],
    kind: "with values",
    within: 500,
  },
  {
    name: "restored with old tokens",
    planted: "a store restored from a backup continues counting where the backup ended",
    why: "After an asynchronous failover, 253 tokens were issued a second time while their first holders were still alive.",
    patches: [
      {
        file: "store/sqlite/sql/service.sql",
        find: "set epoch = epoch + 1, token_floor = (epoch + 1) << 40",
        replace: "set epoch = epoch + 1",
      },
    ],
    detectedBy: ["restoredTokensAreNew", "restoreFences"],
    kind: "with a rewound store",
    within: 200,
  },
  {
    name: "restore that ends no term",
    planted: "the holder of a lease in the backup still holds it after the restore",
    why: "The row says so, and the holder's process is still there; what it wrote since is gone.",
    patches: [
      {
        file: "store/sqlite/sql/leases.sql",
        find: "where journal in (select journal from leases where owner is not null",
        replace: "where journal in (select journal from leases where owner is not null and journal < 0",
      },
    ],
    detectedBy: ["restoreFences"],
    kind: "with a rewound store",
    within: 200,
  },
  {
    name: "action without its audit entry",
    planted: "an operator takes over a lease, and the audit log does not record it",
    why: "The handler writes the audit entry after the action, and the process may die in between.",
    patches: [
      {
        file: "operator/preempt.ts",
        find: "    operatorAction(request, action),\n",
        replace: "",
      },
    ],
    detectedBy: ["actionsAreAudited"],
    kind: "with operators",
    within: 50,
  },
  {
    name: "overlap policy ignored",
    planted: "a schedule does not remember the last run that it started",
    why: "Cron starts the nightly job whether or not yesterday's has ended.",
    patches: [
      {
        file: "reactor/fire-schedules.ts",
        find: "return { plan: { ...plan, dueAt: after, lastRun: run.id }, nextAt: after,",
        replace: "return { plan: { ...plan, dueAt: after }, nextAt: after,",
      },
    ],
    detectedBy: ["overlapPolicyHolds"],
    kind: "with a schedule",
    within: 200,
  },
];

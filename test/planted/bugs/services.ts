import type { Bug } from "../bug.ts";

export const serviceBugs: readonly Bug[] = [
  {
    name: "swap without looking",
    planted: "a value is written whatever version its writer has seen",
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
    planted: "a store that was restored from a backup goes on counting where the backup left off",
    why: "After an asynchronous failover 253 tokens were issued a second time: their first holders still live.",
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
    planted: "whoever held a lease in the backup holds it still when the backup is restored",
    why: "The row says so, and the holder's process is still there; what it wrote since is not.",
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
    name: "action without its entry",
    planted: "an operator takes a lease over, and the audit does not know",
    why: "The audit is written by the handler, after the deed, where it works as a rule.",
    patches: [
      {
        file: "operator/preempt.ts",
        find: "    operatorAction(act, action),\n",
        replace: "",
      },
    ],
    detectedBy: ["actionsAreAudited"],
    kind: "with operators",
    within: 50,
  },
  {
    name: "overlap not kept",
    planted: "a schedule does not remember the run that it has started last",
    why: "Cron starts the nightly job whether or not the one of yesterday has ended.",
    patches: [
      {
        file: "reactor/fire-schedules.ts",
        find: "return { plan: { ...plan, due: after, last: run.id }, nextAt: after,",
        replace: "return { plan: { ...plan, due: after }, nextAt: after,",
      },
    ],
    detectedBy: ["overlapPolicyHolds"],
    kind: "with a schedule",
    within: 200,
  },
];

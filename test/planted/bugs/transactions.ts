import type { Bug } from "../bug.ts";

export const transactionBugs: readonly Bug[] = [
  {
    name: "run outside the caller's transaction",
    planted: "a run that is started in a transaction of the caller is created by a transaction of the store's own",
    why: "Insert the order, then enqueue the job: after a rollback, or a crash in between, only one of the two exists.",
    patches: [
      {
        file: "store/sql/within.ts",
        find: "      return callers.run(transaction, (context) => startPlan(context, tenant, start), 1);\n",
        replace: "      void [startPlan, transaction];\n      return driver.create(tenant, start.data, undefined);\n",
      },
    ],
    detectedBy: ["runsMatchRows"],
    kind: "with transactions",
    within: 50,
  },
  {
    name: "step's record after its rows",
    planted: "the rows of a transactional step commit first, and its record in the next transaction",
    why: "Two databases, or two commits in one: a process that was replaced has written its rows, and so does the next.",
    patches: [
      {
        file: "store/sqlite/callers.ts",
        find: "      appended = this.#perform(statements, (context) => appendOncePlan(context, fence, entry));\n",
        replace:
          "      statements.commit();\n      statements.begin();\n      appended = this.#perform(statements, (context) => appendOncePlan(context, fence, entry));\n",
      },
    ],
    detectedBy: ["rowsMatchSteps"],
    kind: "with transactions",
    within: 200,
  },
  {
    name: "commit in doubt repeated",
    planted: "a step whose commit got no response is executed again, and its record counts as written if it is there",
    why: "An error on COMMIT is read as a rollback, and the retry of an idempotent append succeeds: the rows exist twice.",
    patches: [
      {
        file: "engine/context/transactions.ts",
        find: 'isTapeError(error, "TAPE_STORE_BUSY") || isTapeError(error, "TAPE_STORE_UNREACHABLE");',
        replace:
          'isTapeError(error, "TAPE_STORE_BUSY") || isTapeError(error, "TAPE_STORE_UNREACHABLE") || isTapeError(error, "TAPE_OUTCOME_UNKNOWN");',
      },
      {
        file: "store/sql/plans/append.ts",
        find: 'const row = yield* queryRow("fence", { tenant, journal, token, nonce, after });\n  if (row === undefined) throw yield* explainRefusal(fence, after);\n',
        replace:
          'const row = yield* queryRow("fence", { tenant, journal, token, nonce, after });\n  if (row === undefined) return yield* appendRetryPlan(fence, entry);\n',
      },
    ],
    detectedBy: ["rowsMatchSteps"],
    kind: "with transactions",
    within: 500,
  },
];

import type { Bug } from "../bug.ts";

export const scopeBugs: readonly Bug[] = [
  {
    name: "a scope's end is not recorded",
    planted: "the end of a scope takes effect at once, and has no record",
    why: "A cancel scope is a matter of memory, as in every library for tasks: until another process executes the code.",
    patches: [
      {
        file: "engine/context/scopes.ts",
        find: `    drive.journal.enqueue(
      [record],
      () => {
        this.#closed(scope, data, undefined);
        drive.parkIfIdle();
      },
      (error) => drive.fail(error),
    );`,
        replace: "    void record;\n    this.#closed(scope, data, undefined);\n    drive.parkIfIdle();",
      },
    ],
    detectedBy: ["scopesAgree"],
    kind: "with scopes",
    within: 200,
  },
  {
    name: "a time-out withdraws a sent effect",
    planted: "the end of a scope withdraws every effect inside that has no outcome, also one that was sent",
    why: "The caller has stopped waiting, so the call is over: and the payment that arrived has no owner.",
    patches: [
      {
        file: "store/sqlite/sql/effects.sql",
        find: "where run = :run and pos = :pos and sub = 0 and status = 'PENDING' and (not uncertain or semantics = 'read');",
        replace: "where run = :run and pos = :pos and sub = 0 and status in ('PENDING', 'DISPATCHED', 'UNKNOWN');",
      },
    ],
    detectedBy: ["happenedIsKnown", "scopesAgree"],
    kind: "with scopes",
    within: 500,
  },
  {
    name: "a saga compensates what came before it",
    planted: "a failed saga makes every armed obligation of its run due, also those outside",
    why: "One list of compensations for each workflow, as in most libraries for sagas: no part of it can be compensated alone.",
    patches: [
      {
        file: "engine/context/saga.ts",
        find: "row.run === journal && this.#effects.has(row.pos) && !row.surplus",
        replace: "row.run === journal && !row.surplus",
      },
    ],
    detectedBy: ["sagaCompensatesExactly"],
    kind: "with scopes",
    within: 200,
  },
  {
    name: "a detached child is cancelled",
    planted: "a detached run counts among the children of its scope, and the end of the scope cancels it",
    why: "Both kinds are started by one call, and the line that registers the child comes before the choice.",
    patches: [
      {
        file: "engine/context/detached.ts",
        find: 'import type { DetachedOptions, DetachedRun } from "../../sdk/context.ts";',
        replace:
          'import type { DetachedOptions, DetachedRun } from "../../sdk/context.ts";\nimport { currentSite } from "../../sdk/current.ts";',
      },
      {
        file: "engine/context/detached.ts",
        find: "  const inputHash = fingerprint(input);\n  return",
        replace: "  const inputHash = fingerprint(input);\n  const scope = ops.scopeAt(currentSite());\n  return",
      },
      {
        file: "engine/context/detached.ts",
        find: "      if (chosen === undefined) handle.end(",
        replace: "      scope?.addChild(pos, data.id);\n      if (chosen === undefined) handle.end(",
      },
    ],
    detectedBy: ["detachedLives"],
    kind: "with scopes",
    within: 500,
  },
];

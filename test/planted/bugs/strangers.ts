import type { Bug } from "../bug.ts";

export const strangerBugs: readonly Bug[] = [
  {
    name: "fence that ignores the tenant",
    planted: "a write is accepted under a journal's token and nonce, whichever tenant sends it",
    why: "The check was in the server's cache: a worker of one tenant could write and end another tenant's runs.",
    patches: [
      {
        file: "store/sqlite/sql/leases.sql",
        find: "l.journal = :journal and l.tenant = :tenant and",
        replace: "l.journal = :journal and (l.tenant = :tenant or true) and",
      },
    ],
    detectedBy: ["strangersGetNothing", "strangersChangeNothing"],
    kind: "with strangers",
    within: 200,
  },
  {
    name: "renewal that ignores the tenant",
    planted: "any tenant that knows a lease's token and nonce can renew it",
    why: "A renewal changes no data, so no check asks for its tenant; a dead holder's work then never resumes.",
    patches: [
      {
        file: "store/sqlite/sql/leases.sql",
        find: "  stalled = 0\nwhere journal = :journal and tenant = :tenant and",
        replace: "  stalled = 0\nwhere journal = :journal and (tenant = :tenant or true) and",
      },
    ],
    detectedBy: ["strangersGetNothing"],
    kind: "with strangers",
    within: 500,
  },
  {
    name: "run lookup that ignores the tenant",
    planted: "a run is looked up by its id alone",
    why: "Ids are unique with one tenant, and the lookup stays as it is when a second tenant arrives.",
    patches: [
      {
        file: "store/sqlite/sql/runs.sql",
        find: "  created_at, ended_at from runs where tenant = :tenant and id = :id",
        replace: "  created_at, ended_at from runs where (tenant = :tenant or true) and id = :id",
      },
    ],
    detectedBy: ["strangersGetNothing", "strangersChangeNothing"],
    kind: "with strangers",
    within: 500,
  },
  {
    name: "approvers not checked",
    planted: "any sender can answer a gate that names its approvers",
    why: "The form shows who may approve, and no other code checks it.",
    patches: [
      {
        file: "model/approvers.ts",
        find: "if (!isToken && !isNamed) return",
        replace: "if (!isToken && !isNamed && approvers.by === undefined) return",
      },
    ],
    detectedBy: ["onlyApproversAnswer"],
    kind: "with a guarded gate",
    within: 200,
  },
  {
    name: "approval before the gate opened",
    planted: "a gate with approvers accepts a signal from before it was opened, when its sender could not be checked",
    why: "Signals wait for their gate: that is what an inbox is for.",
    patches: [
      {
        file: "engine/context/gates.ts",
        find: "if (needsApproval(before, note.data) && !note.data.approves?.includes(pos)) return undefined;",
        replace: "",
      },
      {
        file: "store/sqlite/sql/waits.sql",
        find: "and (approvers is null or :to <> 'RECEIVED' or instr(approvals, ',' || :note || ',') > 0)",
        replace: "and (:note is null or true)",
      },
    ],
    detectedBy: ["onlyApproversAnswer"],
    kind: "with a guarded gate",
    within: 200,
  },
  {
    name: "gate value not validated",
    planted: "a gate accepts a signal whose value does not match its schema",
    why: "The sender validates it, if it is our sender.",
    patches: [
      {
        file: "engine/context/gates.ts",
        find: 'if ("value" in checked) return { kind: "gate.resolved", data: { pos, to: "RECEIVED", value: checked.value, note } };',
        replace: 'if (note > 0) return { kind: "gate.resolved", data: { pos, to: "RECEIVED", value, note } };',
      },
    ],
    detectedBy: ["unfitSignalsAreRefused"],
    kind: "with a guarded gate",
    within: 200,
  },
  {
    name: "refusal not recorded",
    planted: "a signal that did not match its gate's schema is offered again whenever the run is driven",
    why: "Only the process that refused the signal remembers the refusal.",
    patches: [
      {
        file: "engine/replay/history.ts",
        find: 'case "signal.refused":\n        this.#consumed.add(record.data.note);\n',
        replace: 'case "signal.refused":\n',
      },
    ],
    detectedBy: ["unfitSignalsAreRefused"],
    kind: "with a guarded gate",
    within: 500,
  },
  {
    name: "cancelled as if never started",
    planted: "cancelling a free run ends it as one that never started, without checking what it has done",
    why: "The run is RUNNABLE and free: that row does not say whether it waits for its first term or a later one.",
    patches: [
      {
        file: "operator/cancel.ts",
        find: 'return since.every(({ kind }) => kind === "term.started" || kind === "term.ended") ? first.data : undefined;',
        replace: "return first.data;",
      },
      {
        file: "operator/cancel.ts",
        find: " || first.data.holder !== undefined || since.length + 1 === maxTerms",
        replace: "",
      },
    ],
    detectedBy: ["unstartedDidNothing", "clientCallsAnswered"],
    kind: "with an early cancellation",
    within: 500,
  },
  {
    name: "audit without its seal",
    planted: "the hash of the newest entry is not stored, so the next entry is linked to nothing",
    why: "Each entry has a hash, so the table looks sealed; the chain has never been verified.",
    patches: [
      {
        file: "store/sql/plans/audit.ts",
        find: '  yield* query("audit.seal", { tenant, hash });\n',
        replace: '  yield* query("audit.seal", { tenant, hash: "" });\n',
      },
    ],
    detectedBy: ["auditIsSealed"],
    kind: "with operators",
    within: 200,
  },
  {
    name: "seal without the reason",
    planted: "the hash of an entry covers the action and its target, but not the operator or the reason",
    why: "The hash covers the columns that have an index.",
    patches: [
      {
        file: "store/audit.ts",
        find: "const { cursor: _cursor, hash: _hash, ...fields } = entry;",
        replace: "const { cursor: _cursor, hash: _hash, reason: _reason, ...fields } = entry;",
      },
    ],
    detectedBy: ["auditIsSealed"],
    kind: "with operators",
    within: 50,
  },
  {
    name: "fork of a compensated effect",
    planted: "a fork keeps an effect that its source run has compensated, and the caller need not confirm it",
    why: "The effect's record says that it happened; that it was compensated since is in another journal.",
    patches: [
      {
        file: "operator/fork.ts",
        find: "  if (missing.length === 0) return;\n  const names = missing.map(({ pos, name, obligation })",
        replace: "  if (missing.length >= 0) return;\n  const names = missing.map(({ pos, name, obligation })",
      },
    ],
    detectedBy: ["forksKeepWhatStands"],
    kind: "with unnamed forks",
    within: 500,
  },
  {
    name: "sleep by the wall clock",
    planted: "the length of a sleep is measured with the settable wall clock",
    why: "Date.now() plus the duration: when the clock is set, a minute lasts a day, or nothing.",
    patches: [
      {
        file: "store/sqlite/open.ts",
        find: "steady: Math.floor(up()) + anchor,",
        replace: "steady: Math.floor(clock.wall()),",
      },
    ],
    detectedBy: ["timersNeverEarly", "clientCallsAnswered", "noRunForgotten", "livenessHolds"],
    kind: "with a set clock",
    within: 200,
  },
];

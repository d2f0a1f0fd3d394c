import type { Bug } from "../bug.ts";

export const strangerBugs: readonly Bug[] = [
  {
    name: "fence that forgets its tenant",
    planted: "a write is accepted under a journal's token and nonce, whoever's they are",
    why: "The check stood in the server's cache: a worker of one tenant could write and end another tenant's runs.",
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
    name: "renewal that forgets its tenant",
    planted: "a lease is renewed for whoever knows its token and nonce",
    why: "A renewal changes no data, so nobody asks whose it is; a dead holder's work then waits for ever.",
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
    name: "run that forgets its tenant",
    planted: "a run is looked up by its id alone",
    why: "Ids are unique where there is one tenant, and nobody changes the look-up when there are two.",
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
    name: "approvers that nobody asks",
    planted: "a gate that is for some people is answered by whoever sends its signal",
    why: "Who may approve is shown in the form and checked nowhere else.",
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
    name: "approval from before",
    planted: "a gate for some people takes what was sent before it stood open, when nobody could ask who may",
    why: "Signals wait for their gate: that is what an inbox is for.",
    patches: [
      {
        file: "engine/context/gates.ts",
        find: "if (before.approvers !== undefined && !note.data.approves?.includes(pos)) return undefined;",
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
    name: "value that nobody checks",
    planted: "a gate takes a signal whose value does not fit its schema",
    why: "The sender checks it, if it is our sender.",
    patches: [
      {
        file: "engine/context/gates.ts",
        find: 'if ("value" in checked) return { kind: "gate.resolved", data: { pos, to: "RECEIVED", value: checked.value, note } };',
        replace: 'if (note > 0) return { kind: "gate.resolved", data: { pos, to: "RECEIVED", value: sent, note } };',
      },
    ],
    detectedBy: ["unfitSignalsAreRefused"],
    kind: "with a guarded gate",
    within: 200,
  },
  {
    name: "refused for ever",
    planted: "a signal that did not fit its gate is offered to it again each time the run is driven",
    why: "What was refused is remembered by the process that refused it.",
    patches: [
      {
        file: "engine/replay/history.ts",
        find: 'case "signal.refused":\n        consumed.add(record.data.note);\n',
        replace: 'case "signal.refused":\n',
      },
    ],
    detectedBy: ["unfitSignalsAreRefused"],
    kind: "with a guarded gate",
    within: 500,
  },
  {
    name: "cancelled in the middle",
    planted: "who cancels a run ends it as one that never began, without a look at what it has done",
    why: "It is RUNNABLE and nobody holds it: that it waits for its next turn, and not for its first, is not in that row.",
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
    kind: "with one cancelled early",
    within: 200,
  },
  {
    name: "audit without its seal",
    planted: "the hash of the newest entry is not kept, so the next one is linked to nothing",
    why: "Each entry has a hash, so the table looks sealed; nobody has ever followed the chain.",
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
    name: "seal that leaves the reason out",
    planted: "the hash of an entry is made of what was done to what, and not of who said why",
    why: "One hashes the columns one has an index on.",
    patches: [
      {
        file: "store/audit.ts",
        find: "const { cursor: _cursor, hash: _hash, ...words } = entry;",
        replace: "const { cursor: _cursor, hash: _hash, reason: _reason, ...words } = entry;",
      },
    ],
    detectedBy: ["auditIsSealed"],
    kind: "with operators",
    within: 50,
  },
  {
    name: "fork on what was undone",
    planted: "a fork keeps what the run it comes from has undone, and nobody has to say so",
    why: "Its journal says that it happened; that it was undone since is in another one.",
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
    planted: "how long a run has slept is told by the clock that people set",
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

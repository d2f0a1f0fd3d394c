import type { Bug } from "../bug.ts";

export const journalBugs: readonly Bug[] = [
  {
    name: "number before commit",
    planted: "the writer numbers a record when it sends it, and the store does not check the number",
    why: "A counter in memory, or a database sequence: a rejected or rolled-back write leaves a gap, and readers wait for it.",
    patches: [
      {
        file: "store/sqlite/sql/leases.sql",
        find: "  and exists (select 1 from records p where p.journal = :journal and p.seq = :after)\n  and not exists",
        replace: "  and not exists",
      },
      {
        file: "engine/journal/journal-writer.ts",
        find: "      appended = appender.append(fence, { after: this.#head, records, ...this.#generation });\n",
        replace:
          "      appended = appender.append(fence, { after: this.#head, records, ...this.#generation });\n      this.#head += records.length;\n",
      },
    ],
    detectedBy: ["seqIsDense"],
    within: 50,
  },
  {
    name: "body called again on replay",
    planted: "replay does not return the recorded results of steps",
    why: "Resuming from the last checkpoint repeats what came after it; random or changed inputs give another result.",
    patches: [
      { file: "engine/replay/history.ts", find: '  "step.done",\n  "decision.made",', replace: '  "decision.made",' },
    ],
    detectedBy: ["oneResult"],
    within: 500,
  },
  {
    name: "start twice, run twice",
    planted: "a run id is not unique: repeating a start after a lost response creates a second run",
    why: "A client that got no response to its POST sends it again, and the order is placed twice.",
    patches: [
      {
        file: "store/sqlite/migrations/0001_initial.sql",
        find: "create unique index runs_id on",
        replace: "create index runs_id on",
      },
    ],
    detectedBy: ["runIdsAreUnique"],
    within: 50,
  },
  {
    name: "ended run wakes again",
    planted: "the end of a run does not close its inbox: a late note has it driven, and ended, again",
    why: "A late cancellation or callback finds a finished order and reopens it.",
    patches: [
      { file: "store/sqlite/sql/leases.sql", find: "open = :open", replace: "open = (:open or 1)" },
      {
        file: "store/sqlite/sql/runs.sql",
        find: "where journal = :journal and instr(:from, phase) > 0\n  and (phase <> 'STUCK' or stuck_from = :to)\n  and (ended_at is null)\n",
        replace: "where journal = :journal\n",
      },
    ],
    detectedBy: ["oneStartOneEnd", "resultsAreFinal"],
    within: 50,
  },
  {
    name: "signal lost in takeover",
    planted: "a signal that one driver has taken and no gate has used yet is unknown to the next driver",
    why: "A message is acknowledged when it is read into memory, and the memory is lost with the process.",
    patches: [
      {
        file: "engine/journal/pending-waits.ts",
        find: "notes.filter((note) => note.seq <= history.taken && !history.used(note))",
        replace:
          'notes.filter((note) => note.seq <= history.taken && !history.used(note) && note.kind !== "signal.sent")',
      },
    ],
    detectedBy: ["signalsAreNotSkipped"],
    kind: "with signals",
    within: 500,
  },
  {
    name: "signal counted twice",
    planted: "a signal that is sent again under the same key enters the inbox again",
    why: "The sender retries and the receiver does not deduplicate: one click approves two things.",
    patches: [
      {
        file: "store/sql/plans/intake.ts",
        find: "  if (key === undefined) return { n: (yield* send)!, duplicate: false };\n",
        replace: '  if (key !== "") return { n: (yield* send)!, duplicate: false };\n',
      },
    ],
    detectedBy: ["signalsOnceInOrder"],
    kind: "with signals",
    within: 50,
  },
  {
    name: "parked past a note",
    planted: "a run parks without comparing the number of notes",
    why: "The lost wake-up: check, find nothing, sleep. The note arrived in between, and its hint found no sleeper.",
    patches: [
      {
        file: "store/sqlite/sql/leases.sql",
        find: "and (kind = 'name' or notes = :notes_taken)",
        replace: "and (:notes_taken = :notes_taken)",
      },
      {
        file: "store/sql/plans/append.ts",
        find: 'row.kind === "name" || Number(row.notes) === change.notesTaken) return;',
        replace: "row.kind !== undefined) return;",
      },
    ],
    detectedBy: ["noRunForgotten", "clientCallsAnswered"],
    within: 500,
  },
  {
    name: "timer marked before its note",
    planted: "the timers reactor marks due timers as fired, and sends their notes afterwards",
    why: "Mark as sent, then send: after a crash in between, the reminder never comes.",
    patches: [
      {
        file: "store/sqlite/sql/waits.sql",
        find: "-- read\n-- Each kind by its own clock, and within it in the order of the index, so that LIMIT ends the scan early.\nselect x.run, x.pos, x.purpose, x.tenant, x.status, x.due_at, x.late_ms from (\n  select * from (select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at, :at - t.due_at as late_ms from timers t\n    where t.status = 'SET' and t.tenant = :tenant and t.steady = 0 and t.due_at <= :at order by t.due_at limit :limit)\n  union all\n  select * from (select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at + :at - :steady, :steady - t.due_at from timers t\n    where t.status = 'SET' and t.tenant = :tenant and t.steady = 1 and t.due_at <= :steady order by t.due_at limit :limit)) x\norder by x.late_ms desc, x.run, x.pos limit :limit",
        replace:
          "-- unfenced: planted\nupdate timers set status = 'FIRED' where status = 'SET' and due_at <= case steady when 1 then :steady else :at end and tenant = :tenant and (:limit = :limit)\nreturning *, case steady when 1 then :steady else :at end - due_at as late_ms",
      },
      {
        file: "store/sqlite/sql/waits.sql",
        find: "and status = 'SET' and due_at <=",
        replace: "and due_at <=",
      },
    ],
    detectedBy: ["noRunForgotten", "clientCallsAnswered", "timersNeverEarly", "projectionMatches"],
    kind: "with timers",
    within: 500,
  },
  {
    name: "timer not marked with its note",
    planted: "the note of a due timer is sent, and every second timer is marked as fired one second later",
    why: "Send, then mark as sent: a poll in between sends it again.",
    patches: [
      {
        file: "store/sqlite/sql/waits.sql",
        find: "update timers set status = 'FIRED'\n",
        replace:
          "update timers set status = case when due_at % 2 = 0 then 'SET' else 'FIRED' end, due_at = due_at + 1001 * (due_at % 2 = 0)\n",
      },
    ],
    detectedBy: ["timersNeverEarly"],
    kind: "with timers",
    within: 500,
  },
  {
    name: "sleep ended without its timer",
    planted: "a driver that ends its run's sleep writes the record and leaves the timer set",
    why: "A fast path past the slow one must do everything that the slow one does.",
    patches: [
      {
        file: "store/sqlite/backend.ts",
        find: "const { count } = session.statements.run(timer.do, timer, session.times);",
        replace: "const count = 1;",
      },
    ],
    detectedBy: ["timersNeverEarly", "projectionMatches"],
    kind: "with timers",
    within: 500,
  },
  {
    name: "timer early",
    planted: "a timer that is due within the next second counts as due",
    why: "Rounding to whole seconds, or a poll that takes what will be due before the next one.",
    patches: [
      {
        file: "store/sqlite/sql/waits.sql",
        find: "t.due_at <= :at order",
        replace: "t.due_at <= :at + 1000 order",
      },
      {
        file: "store/sqlite/sql/waits.sql",
        find: "t.due_at <= :steady order",
        replace: "t.due_at <= :steady + 1000 order",
      },
      {
        file: "store/sqlite/sql/waits.sql",
        find: "and due_at <= case",
        replace: "and due_at <= 1000 + case",
      },
    ],
    detectedBy: ["timersNeverEarly"],
    kind: "with timers",
    within: 500,
  },
  {
    name: "lane without its own positions",
    planted: "a branch in a lane takes the next position of the whole run, whatever its lane",
    why: "One counter for all: on replay, the faster branch takes the other branch's result, and equal names hide the mix-up.",
    patches: [
      {
        file: "engine/context/operations.ts",
        find: "    return lane !== undefined && lane.of === this.drive ? lane : this.lanes.root;",
        replace: "    return lane !== undefined && lane.of !== this.drive ? lane : this.lanes.root;",
      },
    ],
    detectedBy: ["lanesKeepTheirAnswers"],
    kind: "with lanes",
    within: 200,
  },
];

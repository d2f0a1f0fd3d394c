import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { neverOnAgenda } from "../../src/alarm/armed-store.ts";
import type { ChangeKind } from "../../src/model/changes.ts";
import { agendaChanges, mayEnterAgenda } from "../../src/model/on-agenda.ts";
import { changesOf, type RecordContext } from "../../src/model/projection.ts";
import { type NewRecord, recordKinds } from "../../src/model/records.ts";
import { sqlFiles } from "../../src/store/sql/files.ts";
import { loadStatements, type Statement } from "../../src/store/sql/statements.ts";
import { samples } from "../../testkit/conformance/misplaced.ts";

const folder = new URL("../../src/store/", import.meta.url);
const statementsOf = (store: string): ReadonlyMap<string, Statement> =>
  loadStatements(sqlFiles(new URL(`${store}/sql/`, folder)), (position) => `$${position}`);

/** They identify a row, and do not say when it is due. */
const identity = new Set(["tenant", "kind", "workflow", "id", "name", "queue", "reactor", "class"]);

/** Columns that the statement `agenda` reads, by table. */
function agendaColumns(agenda: string): Map<string, ReadonlySet<string>> {
  const schema = readFileSync(new URL("postgres/schema.sql", folder), "utf8");
  const words = new Set(agenda.match(/\w+/g));
  const found = new Map<string, ReadonlySet<string>>();
  for (const [, table = ""] of agenda.matchAll(/(?:from|join) (?:tape\.)?(\w+)/g)) {
    const [, rows] = schema.match(new RegExp(`table tape\\.${table}\\(([\\s\\S]*?)\\n\\)`)) ?? [];
    const columns = [...(rows ?? "").matchAll(/^ {2}(\w+)\s/gm)].map(([, column = ""]) => column);
    const read = columns.filter((column) => words.has(column) && !identity.has(column));
    if (read.length > 0) found.set(table, new Set(read));
  }
  return found;
}

/** The clause up to the parenthesis that ends it, without its subqueries: their own `where` does not end it. */
function outermost(text: string): string {
  let depth = 0;
  let kept = "";
  for (const char of text) {
    if (char === "(") depth++;
    else if (char === ")" && --depth < 0) return kept;
    else if (depth === 0) kept += char;
  }
  return kept;
}

function writtenColumns(text: string, table: string): string[] {
  const clauses = [...text.matchAll(new RegExp(`(insert into|update) (?:tape\\.)?${table}\\b`, "g"))];
  return clauses.flatMap(({ 0: start, 1: verb, index }) => {
    const rest = text.slice(index + start.length);
    if (verb === "insert into") return rest.match(/^[^(]*\(([^()]*)\)/)?.[1]?.match(/\w+/g) ?? [];
    const [, set = ""] = outermost(rest).match(/\sset\s([\s\S]*?)(?:\s(?:where|from|returning)\s|$)/) ?? [];
    return [...set.matchAll(/(\w+) =/g)].map(([, column = ""]) => column);
  });
}

/** Statements that write a column of the agenda, in one of the stores. */
function writers(): string[] {
  const found = new Set<string>();
  for (const store of ["sqlite", "postgres"]) {
    const statements = statementsOf(store);
    for (const [table, columns] of agendaColumns(statements.get("agenda")!.text)) {
      for (const { name, text, writes } of statements.values()) {
        if (writes.has(table) && writtenColumns(text, table).some((column) => columns.has(column))) found.add(name);
      }
    }
  }
  return [...found].sort();
}

/**
 * What executes each of these statements: a change of a record, or methods of the contract. `later`: it can only take
 * something off the agenda, or make it due later.
 */
const executedBy: Readonly<
  Record<string, { change: ChangeKind } | { methods: readonly string[] } | { later: string }>
> = {
  "admit.take": { methods: ["claim.find"] },
  "lease.admit": { methods: ["claim.find"] },
  "partition.admit": { methods: ["claim.find"] },
  "partition.return": { methods: ["claim.find"] },
  "queue.advance": { methods: ["claim.find"] },
  claim_many: { methods: ["claim.find"] },
  "claim_many.pin": { methods: ["claim.find"] },
  "lease.pin": { later: "it follows the creation, the term or the release of a run, which are listed" },
  "build.see": { later: "a report of a process changes nothing that is due" },
  "lease.take": { methods: ["claim.find", "claim.acquire"] },
  "lease.doom": { methods: ["claim.acquire"] },
  "leases.doom": { methods: ["claim.restored"] },
  "leases.reboot": { later: "it runs when the store is opened, after the machine was restarted" },
  "lease.pause": { later: "only a named lease can be paused, and none is on the agenda" },
  "lease.renew": { later: "the term ends later" },
  renew_many: { later: "the term ends later" },
  "lease.stall": { later: "the armed store sets an alarm once it learns that a renewal was refused" },
  "lease.first": { methods: ["intake.createRuns"] },
  create_many: { methods: ["intake.createRuns"] },
  "create_many.counted": { methods: ["intake.createRuns"] },
  "create_many.labelled": { methods: ["intake.createRuns"] },
  "create_many.queued": { methods: ["intake.createRuns"] },
  "timer.move": { methods: ["intake.createRuns"] },
  fire_many: { methods: ["intake.fireTimer"] },
  "schedule.put": { methods: ["intake.putSchedule"] },
  "schedule.change": { methods: ["intake.putSchedule"] },
  "schedule.fire": { methods: ["intake.fireSchedule"] },
  "queue.create": { methods: ["intake.putQueue"] },
  "queue.change": { methods: ["intake.putQueue", "intake.changeQueue", "intake.resetQueue"] },
  "queue.pause": { methods: ["intake.pauseQueue"] },
  "partition.pause": { methods: ["intake.pauseQueue"] },
  "partition.unpaced": { methods: ["intake.putQueue", "intake.changeQueue", "intake.resetQueue"] },
  "partition.due": { change: "slot.set" },
  "partition.adjust": { change: "slot.set" },
  "lease.create": { change: "lease.create" },
  "lease.release": { change: "lease.release" },
  "lease.wake": { change: "lease.wake" },
  end_many: { change: "lease.release" },
  "end_many.children": { change: "note.create" },
  "end_many.queued": { change: "lease.release" },
  spawn_many: { change: "lease.create" },
  park_many: { change: "lease.release" },
  "park_many.queued": { change: "lease.release" },
  "note.count": { change: "note.create" },
  "items.sweep": { change: "items.sweep" },
  "item.sweep": { later: "the item leaves the agenda" },
  "obligations.release_next": { change: "obligations.release_next" },
  "timer.create": { change: "timer.create" },
  "timer.fire": { later: "the timer leaves the agenda" },
  end_sleep_many: { later: "the timer leaves the agenda" },
  "timer.status": { later: "the timer leaves the agenda" },
  "timers.cancel": { later: "the timer leaves the agenda" },
  "timers.withdraw": { later: "the timer leaves the agenda" },
  "timers.unexpire": { later: "the timer leaves the agenda" },
};

describe("what puts something on the agenda", () => {
  it("every statement that writes a column of the agenda is accounted for", () => {
    expect(writers()).toEqual(Object.keys(executedBy).sort());
  });

  it("each is a listed change, or belongs to methods that are armed", () => {
    for (const [statement, by] of Object.entries(executedBy)) {
      if ("change" in by) expect(agendaChanges.has(by.change), statement).toBe(true);
      if ("methods" in by) for (const method of by.methods) expect(neverOnAgenda.has(method), method).toBe(false);
    }
  });

  it("the list has no other change than these, and the slot of a new run", () => {
    const changes = Object.values(executedBy).flatMap((by) => ("change" in by ? [by.change] : []));
    expect([...agendaChanges].sort()).toEqual([...new Set([...changes, "slot.create"])].sort());
  });

  const timed = { "step.failed": { timer: true }, "gate.opened": { timeoutMs: 5 } } as Record<string, object>;
  const variants = (kind: (typeof recordKinds)[number]): NewRecord[] =>
    [{}, timed[kind] ?? {}].map((more) => ({ kind, data: { ...samples[kind], ...more } }) as unknown as NewRecord);

  it.each(recordKinds)("%s: a record with such a change may enter the agenda", (kind) => {
    for (const record of variants(kind)) {
      const changes = (["run", "item", "name"] as const).flatMap((journal) => {
        const fixed = {
          token: 5n,
          nonce: 6n,
          queued: true,
          keepVersions: 10,
          maxNames: 32,
          maxUnits: 64,
          maxLabels: 16,
          allocate: () => 7,
        };
        try {
          return changesOf(record, { journal: 9, kind: journal, ...fixed } satisfies RecordContext);
        } catch {
          return []; // it does not belong in this journal
        }
      });
      if (changes.some((change) => agendaChanges.has(change.do))) expect(mayEnterAgenda(record)).toBe(true);
    }
  });

  it("steps and decisions set no alarm", () => {
    for (const kind of ["step.done", "decision.made", "sample.taken", "budget.charged"] as const) {
      expect(mayEnterAgenda({ kind, data: samples[kind] } as unknown as NewRecord), kind).toBe(false);
    }
  });
});

import { readFileSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openDatabase } from "../../../src/store/sqlite/database.ts";
import { Statements } from "../../../src/store/sqlite/statements.ts";
import { tenant } from "../../../testkit/conformance/frame.ts";
import { heldRuns } from "../../../testkit/conformance/lease-fixtures.ts";
import { schemaFiles, sqliteSchema } from "../../../tools/schema.ts";
import { type Place, placeForFile } from "./files.ts";

/** Statements that may read more than they return, each with its reason. */
const wide: Readonly<Record<string, string>> = {
  agenda: "as many groups as there are reactors",
  "build.forget": "the builds of one tenant, at most 200, sorted",
  "build.list": "the same",
  "build.unserved": "the same, with at most a thousand runs of each, grouped",
  census: "counts of what is open, each up to a bound, grouped",
  "work.due": "the same",
  "feed.tenants": "as many groups as there are tenants in a bounded part of the feed",
  "lease.due": "of each backlog as many as were requested, sorted together",
  "lease.unserved": "as many workflows as were named, sorted",
  "leases.doom": "all held leases, once in a store's life",
  "leases.reboot": "once in the life of a boot",
  "lease.list": "a page of one tenant's",
  "erase.journals": "a page of the items of one run, sorted",
  "erase.tree": "the runs of one tree, sorted",
  "effect.newest_open": "the keys of what is open, sorted; a page of rows",
  "effect.obligations": "the obligations of one tree, sorted within each run",
  "prune.doubt": "a page of runs that were named, each once",
  "prune.heads": "a few journals of each of them",
  "prune.members": "the trees that were named, sorted",
  "retention.preview": "the first trees that are due, up to a bound, by workflow",
  "run.running": "what one tenant's workers hold, sorted: a page for operators",
  "labels.unlisted": "once in twenty reports, a thousand runs of processes of the previous version",
  "run.in_doubt": "what is in doubt, sorted: few",
  "gate.run": "those of one run, sorted",
  "timer.run": "the same",
  "timer.list": "two short lists, by one clock each, sorted together",
  "timer.due": "the same, sorted by which is later",
  "lease.preload": "the same",
  "chunk.page": "a page of each stream that was asked for, sorted together",
  "chunk.parts": "the chunks of one stream, of bounded size, by their parts",
  "token.list": "a page for people",
  "process.list": "who reported lately, sorted by label: a page for people",
  "quota.recount": "a row for each tenant, when a limit is set",
  "usage.sum": "a stretch of records, summed by tenant",
  "idempotency.purge": "once in 128 calls, a thousand of the oldest",
  "witness.purge": "once in a thousand groups, and the table holds an hour",
};
/** One row, or rows of the statement itself. */
const harmless =
  /^SCAN (meta|migrations|b|d|q|x|tree|up|\(subquery-\d\)|CONSTANT ROW|[ghijqw] VIRTUAL TABLE INDEX 1:)$/;

describe("SQLite", () => {
  let place: Place;
  beforeAll(async () => {
    place = placeForFile();
    await place.open();
  });
  afterAll(() => place.close());

  const planOf = (text: string, db = place.raw()): string[] =>
    db
      .prepare(`explain query plan ${text}`)
      .all()
      .map((row) => String(row.detail));
  const scans = (text: string, db?: DatabaseSync): string[] =>
    planOf(text, db).filter((step) => /^(SCAN|USE TEMP B-TREE)/.test(step) && !harmless.test(step));
  const textOf = (name: string): string => Statements.all.get(name)!.text;
  const scanning = (db?: DatabaseSync): string[] =>
    [...Statements.all.keys()]
      .filter((name) => name !== "migrations.create" && scans(textOf(name), db).length > 0)
      .sort();

  it("has the committed schema (npm run schema writes it)", () => {
    expect(sqliteSchema(place.raw())).toBe(readFileSync(schemaFiles.sqlite, "utf8"));
  });

  it("no statement scans a table, except the listed ones", () => {
    expect(scanning()).toEqual(Object.keys(wide).sort());
  });

  it("nor after ANALYZE on small tables, once the file is reopened", async () => {
    const small = placeForFile();
    onTestFinished(() => small.close());
    const store = await small.open();
    await heldRuns(store, 1);
    await store.close();
    const analyst = small.raw();
    analyst.exec("analyze");
    expect(scanning(analyst)).toContain("run.get");
    const opened: DatabaseSync[] = [];
    const reopened = await small.open({ open: (file) => opened[opened.push(openDatabase(file)) - 1]! });
    expect(scanning(opened.at(-1))).toEqual(Object.keys(wide).sort());
    expect((await reopened.read.runs(tenant)).length).toBe(1);
  });

  it.each([
    ["lease.due", "SEARCH x USING INDEX leases_due (next_reactor=? AND tenant=? AND workflow=? AND due_at<?)"],
    ["agenda", "SEARCH l USING INDEX leases_due (next_reactor=? AND tenant=? AND workflow=?)"],
    ["agenda", "SEARCH l USING INDEX leases_held (tenant=? AND workflow=?)"],
    ["agenda", "SEARCH l USING COVERING INDEX leases_due (next_reactor=? AND tenant=? AND workflow>?)"],
    ["agenda", "SEARCH l USING INDEX leases_held (tenant=?)"],
    ["agenda", "SEARCH timers USING COVERING INDEX timers_due (tenant=? AND steady=?)"],
    ["lease.backlogs", "SEARCH l USING COVERING INDEX leases_due (next_reactor=? AND tenant=? AND workflow>?)"],
    ["lease.stale", "SEARCH l USING INDEX leases_held (tenant=? AND workflow=?)"],
    ["lease.by_nonce", "SEARCH l USING INDEX leases_held (tenant=? AND workflow=?)"],
    [
      "lease.preload",
      "SEARCH timers USING COVERING INDEX timers_due (tenant=? AND steady=? AND due_at>? AND due_at<?)",
    ],
    ["lease.renew", "SEARCH leases USING INTEGER PRIMARY KEY (rowid=?)"],
    ["fence", "SEARCH l USING INTEGER PRIMARY KEY (rowid=?)"],
    ["feed.page", "SEARCH r USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"],
    ["timer.due", "SEARCH t USING COVERING INDEX timers_due (tenant=? AND steady=? AND due_at<?)"],
    ["schedule.due", "SEARCH schedules USING INDEX schedules_due (tenant=? AND next_at<?)"],
    ["tombstone.list_key", "SEARCH tombstones USING INDEX tombstones_journal (journal=? AND tenant=?)"],
    ["audit.page", "SEARCH a USING INDEX audit_n (tenant=? AND n<?)"],
    ["run.started", "SEARCH r USING INDEX runs_created (tenant=? AND created_at>? AND created_at<?)"],
    ["run.finished", "SEARCH r USING INDEX runs_ended (tenant=? AND ended_at>? AND ended_at<?)"],
    ["run.by_prefix", "SEARCH r USING INDEX runs_id (tenant=? AND id>? AND id<?)"],
    ["run.in_doubt", "SEARCH e USING INDEX effects_in_doubt (tenant=? AND run<?)"],
    ["run.by_phase", "SEARCH r USING INDEX runs_phase (tenant=? AND phase=? AND rowid<?)"],
    ["run.by_label", "SEARCH x USING PRIMARY KEY (tenant=? AND key=? AND value=? AND journal<?)"],
    ["run.by_label", "SEARCH o USING COVERING INDEX run_labels_journal (journal=? AND tenant=? AND key=? AND value=?)"],
    ["run.by_label", "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)"],
    ["run.unlisted", "SEARCH r USING INDEX runs_unlisted (tenant=? AND journal<?)"],
    ["label.counts", "SEARCH x USING PRIMARY KEY (tenant=? AND key=? AND value=?)"],
    ["prune.labels", "SEARCH run_labels USING COVERING INDEX run_labels_journal (journal=?)"],
    ["run.running", "SEARCH l USING INDEX leases_held (tenant=?)"],
    ["run.runnable", "SEARCH l USING INDEX leases_recovery (tenant=? AND rowid<?)"],
    ["effect.list", "SEARCH e USING INDEX effects_tenant (tenant=? AND (run,pos,sub)>(?,?,?))"],
    ["effect.newest", "SEARCH e USING INDEX effects_tenant (tenant=? AND (run,pos,sub)<(?,?,?))"],
    ["effect.newest_open", "SEARCH o USING INDEX effects_open (tenant=? AND status=?)"],
    ["effect.newest_of_run", "SEARCH e USING PRIMARY KEY (run=? AND (pos,sub)<(?,?))"],
    ["gate.list", "SEARCH gates USING INDEX gates_tenant (tenant=? AND (opened_at,run,pos)>(?,?,?))"],
    ["gate.open", "SEARCH gates USING INDEX gates_open (tenant=? AND (opened_at,run,pos)>(?,?,?))"],
    ["gate.run", "SEARCH gates USING PRIMARY KEY (run=?)"],
    ["timer.list", "SEARCH t USING INDEX timers_tenant (tenant=? AND steady=?)"],
    ["timer.run", "SEARCH t USING PRIMARY KEY (run=?)"],
    ["run.descendants", "SEARCH r USING INDEX runs_tree (root=?)"],
    ["run.rate", "SEARCH r USING COVERING INDEX runs_created (tenant=? AND created_at>? AND created_at<?)"],
    ["budget.open", "SEARCH budgets USING INDEX budgets_tenant (tenant=?)"],
    ["idempotency.find", "SEARCH idempotency_keys USING PRIMARY KEY (tenant=? AND key=?)"],
    ["idempotency.purge", "SEARCH idempotency_keys USING INDEX idempotency_keys_at (at<?)"],
    ["process.list", "SEARCH p USING PRIMARY KEY (tenant=?)"],
    ["process.purge", "SEARCH processes USING INDEX processes_at (at<?)"],
  ])("%s: %s", (name, step) => {
    expect(planOf(textOf(name))).toContain(step);
  });

  it("a scan would be detected", () => {
    expect(scans("select 1 from records where kind = 'step.done'")).toEqual(["SCAN records"]);
  });
});

import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { heldRun } from "../../../testkit/conformance/frame.ts";
import { postgresSchema, schemaFiles } from "../../../tools/schema.ts";
import { type PlanReader, planReader } from "./plan-reader.ts";
import { type Scene, sceneOn, statementNames, until } from "./scene.ts";

/** Statements that may read more than they return, each with its reason. */
const wide: Readonly<Record<string, string>> = {
  "leases.doom": "all held leases, once in a store's life",
  "labels.unlisted": "once in twenty reports, a thousand runs of processes of the previous version",
  "witness.purge": "at most once a minute, beside a write, and the table holds ten minutes",
};
const narrow = statementNames.filter((name) => name !== "migrations.create" && !Object.hasOwn(wide, name));

describe.each(["postgres14", "postgres18"] as const)("%s: the schema", (server) => {
  let scene: Scene;
  let plans: PlanReader;

  beforeAll(async () => {
    scene = await sceneOn(inject(server));
    plans = await planReader(scene);
  });
  afterAll(() => scene.close());

  it("statements use the first column of an index, also before the tables are analysed", async () => {
    expect(await plans.scansOf(narrow)).toEqual([]);
  });

  it("the list of exceptions has no others", async () => {
    for (const name of Object.keys(wide)) expect(await plans.scansOf([name]), name).not.toEqual([]);
  });

  const rows = async (text: string) => (await scene.admin.query(text)).rows as Record<string, unknown>[];

  it("is the committed one (npm run schema writes it)", async () => {
    expect(await postgresSchema(scene.admin)).toBe(readFileSync(schemaFiles.postgres, "utf8"));
  });

  it("makes the token a key column: the index of the fence is exactly this one", async () => {
    const [fence] = await rows(`
      select i.indisunique, i.indisvalid, i.indisready, i.indimmediate, i.indpred is null as whole,
        i.indexprs is null as plain, i.indnkeyatts::int as keys, i.indnatts::int as columns,
        array(select a.attname::text from unnest(i.indkey) with ordinality k(n, o)
          join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.n order by k.o) as names
      from pg_index i where i.indexrelid = 'tape.leases_fence'::regclass`);
    expect(fence).toEqual({
      indisunique: true,
      indisvalid: true,
      indisready: true,
      indimmediate: true,
      whole: true,
      plain: true,
      keys: 2,
      columns: 2,
      names: ["journal", "token"],
    });
  });

  it("keeps leases in a logged table without foreign keys to them", async () => {
    expect(await rows("select relpersistence::text as p from pg_class where oid = 'tape.leases'::regclass")).toEqual([
      { p: "p" },
    ]);
    // A foreign key locks the row that it references with FOR KEY SHARE, which a takeover would have to wait for.
    expect(await rows("select conname from pg_constraint where contype = 'f'")).toEqual([]);
    expect(await rows("select tgname from pg_trigger")).toEqual([]);
  });

  it("heartbeats touch no index: they are heap-only updates", async () => {
    const store = await scene.open();
    const held = await Promise.all(Array.from({ length: 20 }, () => heldRun(store)));
    const before = await updates();
    for (let k = 1; k <= 10; k++) {
      const verdicts = await store.claim.renew(held.map(({ fence }) => ({ fence, progress: k })));
      expect(verdicts.every((verdict) => verdict.ok)).toBe(true);
    }
    await store.close(); // its connections report their statistics
    await until(async () => (await updates()).all >= before.all + 200, "the statistics do not arrive");
    const after = await updates();
    // With an index on the changed columns, none would be. Some may find their page full: another open transaction on
    // this server keeps old versions from being cleaned up.
    expect(after.heap_only - before.heap_only).toBeGreaterThanOrEqual(0.2 * (after.all - before.all));
  });

  async function updates(): Promise<{ all: number; heap_only: number }> {
    const [row] = await rows(
      "select n_tup_upd::int as all, n_tup_hot_upd::int as heap_only from pg_stat_user_tables where relname = 'leases'",
    );
    return row as { all: number; heap_only: number };
  }

  const pages = (name: string, given: Readonly<Record<string, string>>): Promise<number> => {
    const { params } = plans.statement(name);
    return plans.pages(
      name,
      params.map((param) => given[param] ?? (param === "inDoubt" || param === "held" ? "false" : "null")),
    );
  };

  it("plans do not change with 20 000 finished runs, and a claim reads a few pages", async () => {
    await scene.admin.query(finishedRuns(20_000));
    await scene.admin.query("vacuum analyze tape.runs, tape.run_labels, tape.leases, tape.records, tape.timers");
    expect(await plans.scansOf(narrow)).toEqual([]);
    const backlog = { tenant: "'acme'", workflows: `'["","w"]'`, kind: "'run'", limit: "100" };
    expect(await pages("lease.due", { ...backlog, nextReactor: "'recovery'" })).toBeLessThan(20);
    expect(await pages("lease.stale", { ...backlog, staleOf: "'agent,recovery'" })).toBeLessThan(50);
    expect(await pages("lease.by_nonce", { ...backlog, owner: "'o'", nonce: "1" })).toBeLessThan(50);
    expect(await pages("lease.unserved", { ...backlog, minLagMs: "0" })).toBeLessThan(50);
    expect(await pages("lease.backlogs", { ...backlog, nextReactor: "'recovery'" })).toBeLessThan(20);
    expect(await pages("lease.holders", backlog)).toBeLessThan(20);
    expect(await pages("timer.due", backlog)).toBeLessThan(20);
    // A list by a rare label and a frequent one reads what it returns, ten runs, not the 20 000.
    const byLabels = {
      key: "'customer'",
      value: "'acme'",
      before: "9007199254740991",
      others: `'[["stage",["paid"]]]'`,
    };
    expect(await pages("run.by_label", { ...backlog, ...byLabels, inDoubt: "false" })).toBeLessThan(200);
    // Due work reads nothing of the 10 000 runs that are wanted later, and the census at most as many as it counts.
    expect(await pages("work.due", { tenant: "'acme'", cap: "10000" })).toBeLessThan(100);
    expect(await pages("census", { tenant: "'acme'", cap: "100" })).toBeLessThan(400);
    // A page of the feed reads what it delivers: 100 records, not 40 000.
    const start = { stamp: "0", journal: "0", seq: "0", limit: "100", scan: "100" };
    expect(await pages("feed.page", start)).toBeLessThan(600);
    expect(await pages("feed.page", { ...start, tenant: "'acme'" })).toBeLessThan(1_000);
    // For a tenant without records it scans as many as one query may, of 40 000.
    expect(await pages("feed.page", { ...start, scan: "500", tenant: "'globex'" })).toBeLessThan(2_500);
  });

  it("a page of a list reads only that page, wherever in the 20 000 runs it is, for any filter", async () => {
    const acme = { tenant: "'acme'", limit: "20" };
    // They all started in one millisecond and ended in the next: only the number distinguishes them.
    const range = { since: "0", through: "1", edge: "1", before: "1010000" };
    expect(await pages("run.by_prefix", { ...acme, lower: "'finished-1'", upper: "'finished-2'" })).toBeLessThan(200);
    expect(await pages("run.started", { ...acme, ...range })).toBeLessThan(200);
    expect(await pages("run.finished", { ...acme, since: "3", through: "9", edge: "9", before: "1" })).toBeLessThan(20);
    expect(await pages("run.by_phase", { ...acme, phase: "'STUCK'", before: "9999999" })).toBeLessThan(20);
    expect(await pages("run.running", { ...acme, before: "9999999" })).toBeLessThan(200);
    expect(await pages("tombstone.list_key", { ...acme, journal: "1010000" })).toBeLessThan(20);
    expect(await pages("lease.list", acme)).toBeLessThan(400);
    expect(await pages("run.in_doubt", { ...acme, before: "9999999" })).toBeLessThan(20);
    expect(await pages("run.descendants", { ...acme, root: "1000001" })).toBeLessThan(20);
    expect(await pages("budget.open", acme)).toBeLessThan(20);
    const frequent = { ...acme, key: "'stage'", value: "'paid'", before: "1010000" };
    expect(await pages("run.by_label", frequent)).toBeLessThan(300);
    // Ten of the 20 000 runs have both: the rare label is walked, and the others' runs are not read.
    const rare = { ...acme, key: "'customer'", value: "'acme'", before: "9999999", others: `'[["stage", ["paid"]]]'` };
    expect(await pages("run.by_label", rare)).toBeLessThan(200);
    expect(await pages("run.by_label", { ...rare, tenant: "'globex'" })).toBeLessThan(20);
    expect(await pages("run.unlisted", { ...acme, before: "9999999", labels: `'[["stage", ["paid"]]]'` })).toBeLessThan(
      20,
    );
    const counted = { ...acme, limit: "1000", pairs: `'[["stage", "paid"], ["customer", "acme"]]'` };
    expect(await pages("label.counts", counted)).toBeLessThan(100);
    expect(await pages("run.rate", { ...acme, since: "0", size: "1", buckets: "10" })).toBeLessThan(1_000);
  });

  /** Finished runs with far-off timers, and work that is due tomorrow: nothing that is due now. */
  const finishedRuns = (count: number): string => `
    insert into tape.runs(journal, tenant, id, workflow, phase, input_hash, root, created_at, ended_at)
      select 1000000 + n, 'acme', 'finished-' || n, 'w', 'COMPLETED', 'h', 1000000 + n, 1, 2 from generate_series(1, ${count}) n;
    insert into tape.run_labels(tenant, key, value, journal)
      select 'acme', 'stage', 'paid', 1000000 + n from generate_series(1, ${count}) n
      union all select 'acme', 'customer', 'acme', 1000000 + n * 100 from generate_series(1, 10) n;
    insert into tape.leases(journal, kind, tenant, run, workflow, token, ttl_ms, expires_at, acquired_at, renewed_at, progress_at, open)
      select 1000000 + n, 'run', 'acme', 1000000 + n, 'w', 2, 1, 1, 1, 1, 1, false from generate_series(1, ${count}) n;
    insert into tape.records(journal, seq, token, stamp, at, kind, body)
      select 1000000 + n, s, 1, n, 1, 'run.retried', '{"v":1}' from generate_series(1, ${count}) n, generate_series(1, 2) s;
    insert into tape.timers(run, pos, purpose, tenant, status, due_at)
      select 1000000 + n, 0, 'sleep', 'acme', 'SET', tape.now_ms() + 86400000 from generate_series(1, ${count}) n;
    update tape.leases set next_reactor = 'recovery', due_at = tape.now_ms() + 86400000 where journal % 2 = 0 and journal > 1000000`;
});

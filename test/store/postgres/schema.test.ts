import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { heldRun } from "../../../src/testing/conformance/frame.ts";
import { postgresSchema, schemaFiles } from "../../../tools/schema.ts";
import { type Hand, type Scene, sceneOn, until } from "./scene.ts";

interface Node {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly Filter?: string;
  readonly "Shared Hit Blocks"?: number;
  readonly "Shared Read Blocks"?: number;
  readonly Plans?: readonly Node[];
}

/** Statements that may look at more than they answer, each with its reason. */
const wide: Readonly<Record<string, string>> = {
  "lease.stale": "all held leases: the index that would spare it would make every heartbeat touch an index",
  "lease.mine": "the same",
  "lease.unserved": "the same, at most once in ten seconds",
  agenda: "the same, once in five seconds at rest",
  "leases.doom": "the same, once in a store's life",
  "run.list": "a page for people, newest first",
  "run.wanted": "all that asks for a reactor: a page for people",
  "lease.list": "a page for people",
  "effect.list": "a page for people",
  "gate.list": "a page for people",
  "timer.list": "a page for people",
  "witness.purge": "once a minute, and the table holds ten minutes",
};
/** The others have one row, or a handful. */
const tables =
  "runs records leases effects timers gates claims budgets names note_keys vals val_log tombstones witness repeats processes";

describe.each(["postgres14", "postgres18"] as const)("%s: the schema", (server) => {
  let scene: Scene;
  let hand: Hand;
  let firstColumn: Map<string, string>;

  beforeAll(async () => {
    scene = await sceneOn(inject(server));
    hand = await scene.hand();
    const { rows } = await scene.admin.query<{ index: string; first: string }>(`
      select i.indexrelid::regclass::text as index, a.attname::text as first from pg_index i
      join pg_class c on c.oid = i.indexrelid and c.relnamespace = 'tape'::regnamespace
      join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]`);
    firstColumn = new Map(rows.map(({ index, first }) => [index.replace(/^tape\./, ""), first]));
  });
  afterAll(() => scene.close());

  /** As the store runs it: a named statement whose plan does not depend on the values. */
  async function explain(name: string, how: string, values: readonly string[]): Promise<Node> {
    const list = values.length === 0 ? "" : `(${values.join(", ")})`;
    await hand.sql(`prepare p as ${hand.statement(name).text}`);
    try {
      const { rows } = await hand.sql(`explain (${how}, format json) execute p${list}`);
      return (rows[0] as { "QUERY PLAN": { Plan: Node }[] })["QUERY PLAN"][0]!.Plan;
    } finally {
      await hand.sql("deallocate p");
    }
  }

  /** Every look at a table that could be a look at all of it. */
  async function scans(name: string): Promise<string[]> {
    const found: string[] = [];
    const visit = (node: Node, parent?: Node): void => {
      const { "Relation Name": table = "", "Index Name": index = "", "Index Cond": condition = "" } = node;
      const first = firstColumn.get(index);
      const byIndex = first !== undefined && new RegExp(`\\b${first}\\b`).test(condition);
      // The smallest or largest of all: one entry of the index.
      const oneEntry = first !== undefined && parent?.["Node Type"] === "Limit" && node.Filter === undefined;
      if (/ Scan$/.test(node["Node Type"]) && tables.split(" ").includes(table) && !byIndex && !oneEntry) {
        found.push(`${name}: ${node["Node Type"]} of ${table} by ${index}`);
      }
      for (const child of node.Plans ?? []) visit(child, node);
    };
    visit(
      await explain(
        name,
        "costs off",
        hand.statement(name).params.map(() => "null"),
      ),
    );
    return found;
  }

  async function allScans(): Promise<string[]> {
    const found: string[] = [];
    for (const name of hand.statements()) {
      if (name !== "migrations.create" && !Object.hasOwn(wide, name)) found.push(...(await scans(name)));
    }
    return found;
  }

  it("look things up by the first column of an index, also before anything is known about the tables", async () => {
    expect(await allScans()).toEqual([]);
  });

  it("the list of exceptions holds nothing else", async () => {
    for (const name of Object.keys(wide)) expect(await scans(name), name).not.toEqual([]);
  });

  const rows = async (text: string) => (await scene.admin.query(text)).rows as Record<string, unknown>[];

  it("is the committed one (npm run schema writes it anew)", async () => {
    expect(await postgresSchema(scene.admin)).toBe(readFileSync(schemaFiles.postgres, "utf8"));
  });

  it("makes the token a key column: the index that the fence stands on is exactly this one", async () => {
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

  it("keeps leases in a logged table, and nothing points at them", async () => {
    expect(await rows("select relpersistence::text as p from pg_class where oid = 'tape.leases'::regclass")).toEqual([
      { p: "p" },
    ]);
    // A foreign key locks the row it points at: FOR KEY SHARE, which a takeover would have to wait for.
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
    await store.close(); // its connections hand in their statistics
    await until(async () => (await updates()).all >= before.all + 200, "the statistics do not arrive");
    const after = await updates();
    // With an index on what they change, none would be. Some may find their page full: whoever else has a transaction
    // open on this server keeps old versions from being cleared away.
    expect(after.hot - before.hot).toBeGreaterThanOrEqual(0.2 * (after.all - before.all));
  });

  async function updates(): Promise<{ all: number; hot: number }> {
    const [row] = await rows(
      "select n_tup_upd::int as all, n_tup_hot_upd::int as hot from pg_stat_user_tables where relname = 'leases'",
    );
    return row as { all: number; hot: number };
  }

  it("do not change when 20 000 finished runs are in the store, and claiming reads a handful of pages", async () => {
    await scene.admin.query(finishedRuns(20_000));
    await scene.admin.query("vacuum analyze tape.runs, tape.leases, tape.records, tape.timers");
    expect(await allScans()).toEqual([]);
    const pages = async (name: string, ...values: string[]): Promise<number> => {
      const top = await explain(name, "analyze, buffers", values);
      return (top["Shared Hit Blocks"] ?? 0) + (top["Shared Read Blocks"] ?? 0);
    };
    const served = `'["w"]'`;
    expect(await pages("lease.due", "'recovery'", "null", served, "100")).toBeLessThan(20);
    expect(await pages("lease.stale", "'agent,recovery'", "null", "null", "100")).toBeLessThan(20);
    // The workflow of each of the 20 runs whose holder is gone is looked up: a few pages each, none for the others.
    expect(await pages("lease.stale", "'agent,recovery'", "null", served, "100")).toBeLessThan(100);
    expect(await pages("lease.unserved", "0", "null", served)).toBeLessThan(100);
    expect(await pages("timer.due", "null", "100")).toBeLessThan(20);
    // A page of the feed reads what it delivers: 100 records, not 40 000.
    expect(await pages("feed.page", "0", "0", "0", "null", "100")).toBeLessThan(300);
    expect(await pages("feed.page", "0", "0", "0", "'acme'", "100")).toBeLessThan(1_000);
  });

  it("a page of a list reads that page, wherever in the 20 000 runs it is, and by whatever it is asked for", async () => {
    const page = async (name: string, given: Readonly<Record<string, string>>): Promise<number> => {
      const { params } = hand.statement(name);
      const values = params.map((param) => given[param] ?? (param === "doubt" ? "false" : "null"));
      const top = await explain(name, "analyze, buffers", values);
      return (top["Shared Hit Blocks"] ?? 0) + (top["Shared Read Blocks"] ?? 0);
    };
    const acme = { tenant: "'acme'", limit: "20" };
    // They all began in one millisecond and ended in the next: nothing but the number tells them apart.
    const range = { since: "0", through: "1", edge: "1", before: "1010000" };
    expect(await page("run.named", { ...acme, least: "'finished-1'", beyond: "'finished-2'" })).toBeLessThan(200);
    expect(await page("run.started", { ...acme, ...range })).toBeLessThan(200);
    expect(await page("run.finished", { ...acme, since: "3", through: "9", edge: "9", before: "1" })).toBeLessThan(20);
    expect(await page("run.phased", { ...acme, phase: "'STUCK'", before: "9999999" })).toBeLessThan(20);
    expect(await page("run.held", { ...acme, before: "9999999" })).toBeLessThan(200);
    expect(await page("run.doubtful", { ...acme, before: "9999999" })).toBeLessThan(20);
    expect(await page("run.below", { ...acme, root: "1000001" })).toBeLessThan(20);
    expect(await page("budget.open", acme)).toBeLessThan(20);
    expect(await page("run.rate", { ...acme, since: "0", size: "1", buckets: "10" })).toBeLessThan(1_000);
  });

  /** Runs that ended, with far-off timers and work that is due tomorrow: nothing that anybody wants now. */
  const finishedRuns = (count: number): string => `
    insert into tape.runs(journal, tenant, id, workflow, phase, input_hash, root, created_at, ended_at)
      select 1000000 + n, 'acme', 'finished-' || n, 'w', 'COMPLETED', 'h', 1000000 + n, 1, 2 from generate_series(1, ${count}) n;
    insert into tape.leases(journal, kind, tenant, run, token, ttl_ms, expires_at, acquired_at, renewed_at, progress_at, open)
      select 1000000 + n, 'run', 'acme', 1000000 + n, 2, 1, 1, 1, 1, 1, false from generate_series(1, ${count}) n;
    insert into tape.records(journal, seq, token, stamp, at, kind, body)
      select 1000000 + n, s, 1, n, 1, 'run.retried', '{"v":1}' from generate_series(1, ${count}) n, generate_series(1, 2) s;
    insert into tape.timers(run, pos, purpose, tenant, status, due_at)
      select 1000000 + n, 0, 'sleep', 'acme', 'SET', tape.now_ms() + 86400000 from generate_series(1, ${count}) n;
    update tape.leases set wants = 'recovery', due_at = tape.now_ms() + 86400000 where journal % 2 = 0 and journal > 1000000`;
});

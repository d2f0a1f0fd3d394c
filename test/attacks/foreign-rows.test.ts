import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { tenant } from "../../testkit/conformance/frame.ts";
import { type PlanReader, planReader } from "../store/postgres/plan-reader.ts";
import { type Scene, sceneOn } from "../store/postgres/scene.ts";

/**
 * Another tenant's rows in each table with a list: 20 000, so that a scan would show in the number of pages read.
 * test/store/sqlite/schema checks the indexes that SQLite uses.
 */
const rows = 20_000;
const quiet = "globex";

const series = `generate_series(1000000, ${1_000_000 + rows - 1}) n`;
const fill = [
  `insert into tape.effects(run, pos, sub, tenant, root, role, semantics, dispatch, status, authority, key, args, surplus, created_at, changed_at)
    select n, 1, 0, '${tenant}', n, 'effect', 'idempotent', 'inline', 'CONFIRMED', 1, 'k', '[]', false, n, n from ${series}`,
  `insert into tape.gates(run, pos, tenant, name, status, opened_at) select n, 1, '${tenant}', 'g', 'RECEIVED', n from ${series}`,
  `insert into tape.gates(run, pos, tenant, name, status, opened_at) select n, 2, '${tenant}', 'g', 'OPEN', n from ${series}`,
  `insert into tape.timers(run, pos, purpose, tenant, status, due_at) select n, 1, 'sleep', '${tenant}', 'FIRED', n from ${series}`,
  `insert into tape.runs(journal, tenant, id, workflow, phase, input_hash, root, created_at)
    select n, '${tenant}', 'r' || n, 'unserved', 'LIVE', '', n, n from ${series}`,
  `insert into tape.leases(journal, kind, tenant, run, token, ttl_ms, expires_at, acquired_at, renewed_at, progress_at, next_reactor, workflow)
    select n, 'run', '${tenant}', n, 1, 1, 0, 0, 0, 0, 'recovery', 'unserved' from ${series}`,
];

const lists = ["effect.list", "gate.list", "gate.open", "timer.list", "run.runnable", "run.started", "run.by_prefix"];
const others =
  "run.running run.by_phase run.in_doubt run.finished lease.list budget.open value.list schedule.list audit.page token.list process.list";
const params: Readonly<Record<string, string>> = {
  ...{ limit: "20", before: "9007199254740991", edge: "9007199254740991", since: "0", through: "9007199254740991" },
  ...{ lower: "'a'", upper: "'z'", above: "''", phase: "'STUCK'", prefix: "''", inDoubt: "false", held: "false" },
};

describe("PostgreSQL: lists beside another tenant's rows", () => {
  let scene: Scene;
  let plans: PlanReader;
  beforeAll(async () => {
    scene = await sceneOn(inject("postgres18"));
    for (const text of fill) await scene.admin.query(text);
    await scene.admin.query("vacuum analyze");
    plans = await planReader(scene);
  });
  afterAll(() => scene.close());

  const pages = (name: string, of: string): Promise<number> => {
    const values: Readonly<Record<string, string>> = { ...params, tenant: `'${of}'` };
    return plans.pages(
      name,
      plans.statement(name).params.map((param) => values[param] ?? "null"),
    );
  };

  it.each([...lists, ...others.split(" ")])("%s of a tenant without rows reads none of them", async (name) => {
    expect(await pages(name, quiet)).toBeLessThan(10);
  });

  it.each(lists)("%s of the tenant with the rows reads no more than a page", async (name) => {
    expect(await pages(name, tenant)).toBeLessThan(20 * 8);
  });
});

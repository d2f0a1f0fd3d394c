import { readFileSync } from "node:fs";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLog } from "../../../src/base/log.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { Connections } from "../../../src/store/postgres/connections.ts";
import { migrate, migrations } from "../../../src/store/postgres/migrate.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { parsePostgresUrl } from "../../../src/store/postgres/url.ts";
import type { Migration } from "../../../src/store/sql/migrations.ts";
import { postgresSchema, schemaFiles } from "../../../tools/schema.ts";
import { dropDatabase, freshDatabase } from "../../postgres/database.ts";
import { adminOf, codeOf, until } from "../postgres/scene.ts";
import { laterPostgres } from "./later.ts";

const pidOf = (client: pg.Client): number => (client as unknown as { processID: number }).processID;

const committed = readFileSync(schemaFiles.postgres, "utf8");

describe("PostgreSQL migrations", () => {
  let url: string;
  let admin: pg.Client;
  beforeAll(async () => {
    url = await freshDatabase(inject("postgres18"));
    admin = await adminOf(url);
  });
  afterAll(async () => {
    await admin.end();
    await dropDatabase(url);
  });

  async function expectWhole(schema: string, expected = committed, known = migrations): Promise<void> {
    const store = await openPostgres({ url: `${url}?schema=${schema}`, migrations: known });
    const [created] = await store.intake.createRuns("acme", [{ id: "run", workflow: "w", input: 1 }]);
    expect(created).toMatchObject({ ok: true, fresh: true });
    await store.close();
    expect(await postgresSchema(admin, schema)).toBe(expected);
    const { rows } = await admin.query(`select number::int, name from ${schema}.migrations`);
    expect(rows).toEqual(known.map(({ number, name }) => ({ number, name })));
    expect((await admin.query(`select 1 from ${schema}.meta`)).rowCount).toBe(1);
  }

  /** Migrates over a connection whose server process is ended after the k-th statement. Returns how many there were. */
  async function migrateUntil(schema: string, k: number, known: readonly Migration[]): Promise<number> {
    const connections = new Connections(parsePostgresUrl(`${url}?schema=${schema}`));
    let done = 0;
    const wrap = (client: pg.Client): pg.Client =>
      new Proxy(client, {
        get(target, key) {
          const member: unknown = Reflect.get(target, key, target);
          if (typeof member !== "function") return member;
          if (key !== "query") return member.bind(target);
          return async (...args: unknown[]) => {
            const answer = (await Reflect.apply(member, target, args)) as unknown;
            if (++done === k) await end(pidOf(target));
            return answer;
          };
        },
      });
    try {
      const seams = { clock: systemClock, random: systemRandom, log: silentLog };
      await migrate({ connections, ...seams, wrap, migrations: known });
      expect(done).toBeLessThanOrEqual(k);
    } catch (error) {
      expect((error as Error).message).toMatch(/terminat|not queryable/i);
    } finally {
      await connections.close();
    }
    return done;
  }

  async function end(pid: number): Promise<void> {
    await admin.query("select pg_terminate_backend($1)", [pid]);
    await until(async () => {
      const { rows } = await admin.query("select 1 from pg_stat_activity where pid = $1", [pid]);
      return rows.length === 0;
    }, "the server process does not end");
  }

  it("completes the schema when run again after an end at any statement", async () => {
    await expectWhole("this_one");
    const total = await migrateUntil("whole", Number.POSITIVE_INFINITY, laterPostgres);
    expect(total).toBeGreaterThan(40);
    const later = await postgresSchema(admin, "whole");
    for (const name of ["remarks_text", "budgets_workflow"]) expect(later).toContain(name);
    expect(later).not.toContain("budgets_tenant");
    await expectWhole("whole", later, laterPostgres);
    // The first check, the lock, the schema, the first changes; the middle; the last change, its entry and the COMMIT.
    for (const k of [1, 4, 5, 8, 9, Math.floor(total / 2), total - 2, total - 1, total]) {
      await migrateUntil(`after_${k}`, k, laterPostgres);
      const { rows } = await admin.query("select to_regnamespace($1) is not null as there", [`after_${k}`]);
      expect(rows[0].there, `statement ${k}`).toBe(k === total); // all or nothing
      await expectWhole(`after_${k}`, later, laterPostgres);
    }
  });

  it("four processes open a fresh schema at once: it is migrated once and all are served", async () => {
    const stores = await Promise.all(Array.from({ length: 4 }, () => openPostgres({ url: `${url}?schema=fresh` })));
    const made = await Promise.all(
      stores.map((store, k) => store.intake.createRuns("acme", [{ id: `run-${k}`, workflow: "w", input: 1 }])),
    );
    expect(new Set(made.map(([verdict]) => verdict?.ok && verdict.journal)).size).toBe(4);
    await Promise.all(stores.map((store) => store.close()));
    await expectWhole("fresh");
  });

  it("keeps the rows of a store of the previous version and fills new columns from them", async () => {
    const old = await openPostgres({ url: `${url}?schema=older` });
    await old.intake.createRuns("acme", [{ id: "old", workflow: "w", input: 1, budget: { usd: 7 } }]);
    await old.close();
    const store = await openPostgres({ url: `${url}?schema=older`, migrations: laterPostgres });
    expect((await store.read.spend("acme")).budgets).toMatchObject([{ runId: "old", unit: "usd", cap: 7 }]);
    expect(await store.read.runs("acme", { prefix: "ol" })).toMatchObject([{ id: "old" }]);
    await store.close();
    const { rows } = await admin.query("select workflow, cap::int from older.budgets");
    expect(rows).toEqual([{ workflow: "w", cap: 7 }]);
    await openPostgres({ url: `${url}?schema=fresh_later`, migrations: laterPostgres }).then((fresh) => fresh.close());
    expect(await postgresSchema(admin, "older")).toBe(await postgresSchema(admin, "fresh_later"));
  });

  it.each([
    ["newer", "insert into newer.migrations values (9999, '9999_later.sql', 'x')", "TAPE_SCHEMA_NEWER"],
    ["edited", "update edited.migrations set checksum = 'x'", "TAPE_SCHEMA_CHANGED"],
  ])("a schema that is %s is refused and nothing is changed", async (schema, edit, code) => {
    await expectWhole(schema);
    await admin.query(edit);
    const everything = async () => ({
      schema: await postgresSchema(admin, schema),
      rows: (await admin.query(`select * from ${schema}.migrations, ${schema}.meta`)).rows,
      records: (await admin.query(`select * from ${schema}.records`)).rows,
    });
    const before = await everything();
    expect(await codeOf(openPostgres({ url: `${url}?schema=${schema}` }))).toBe(code);
    expect(await everything()).toEqual(before);
  });
});

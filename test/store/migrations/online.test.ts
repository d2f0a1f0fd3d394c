import type pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import type { Log } from "../../../src/base/log.ts";
import { systemRandom } from "../../../src/base/random.ts";
import type { Store } from "../../../src/store/contract/store.ts";
import { Connections } from "../../../src/store/postgres/connections.ts";
import { type MigrateOptions, migrate, migrations } from "../../../src/store/postgres/migrate.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { parsePostgresUrl } from "../../../src/store/postgres/url.ts";
import { loadMigrations, type Migration } from "../../../src/store/sql/migrations.ts";
import { dropDatabase, freshDatabase } from "../../postgres/database.ts";
import { startPooler } from "../../postgres/pooler.ts";
import { adminOf, codeOf, until } from "../postgres/scene.ts";

/** An advisory lock that only these tests use. */
const gate = 4_711;

/** Migrations of a version that does not exist, next to processes of this one. */
describe("PostgreSQL: a migration next to working processes", () => {
  let url: string;
  let admin: pg.Client;
  const stores: Store[] = [];
  const pools: Connections[] = [];

  beforeAll(async () => {
    url = await freshDatabase(inject("postgres18"));
    admin = await adminOf(url);
    // An index over it is not finished before the gate opens, however slow or fast the machine is. It waits for no
    // lock: the session's own lock timeout would end that.
    await admin.query(`create function public.slow(n bigint) returns bigint language plpgsql immutable as $$
      begin
        while not pg_try_advisory_xact_lock_shared(${gate}) loop perform pg_sleep(0.002); end loop;
        return n;
      end $$`);
  });
  afterAll(async () => {
    await Promise.all([...stores.map((store) => store.close()), ...pools.map((pool) => pool.close())]);
    await admin.end();
    await dropDatabase(url);
  });

  const later = (...files: readonly string[]): Migration[] => [
    ...migrations,
    ...loadMigrations(new Map(files.map((text, k) => [`${9_001 + k}_later.sql`, text]))),
  ];
  /** Index builds pause from here until the gate is opened. */
  const closeGate = async (): Promise<void> => {
    onTestFinished(openGate);
    await admin.query(`select pg_advisory_lock(${gate})`);
  };
  const openGate = async (): Promise<void> => {
    await admin.query("select pg_advisory_unlock_all()");
  };
  const slowIndex = "-- online\ncreate index concurrently runs_slow on tape.runs(public.slow(journal));";

  async function open(address: string, known?: readonly Migration[], log?: Log): Promise<Store> {
    const more = { ...(known === undefined ? {} : { migrations: known }), ...(log === undefined ? {} : { log }) };
    const store = await openPostgres({ url: address, ...more });
    stores.push(store);
    return store;
  }

  async function filled(schema: string, rows: number, params = ""): Promise<{ address: string; store: Store }> {
    const address = `${url}?schema=${schema}${params}`;
    const store = await open(address);
    await admin.query(
      `insert into ${schema}.runs(journal, tenant, id, workflow, phase, input_hash, root, created_at, ended_at)
      select -n, 'past', 'past-' || n, 'w', 'COMPLETED', '', -n, n, n from generate_series(1, $1::int) n`,
      [rows],
    );
    return { address, store };
  }

  function migrating(
    address: string,
    known: readonly Migration[],
    more: Partial<MigrateOptions> = {},
  ): Promise<number> {
    const connections = new Connections(parsePostgresUrl(address));
    pools.push(connections);
    const seams = { clock: systemClock, random: systemRandom, log: () => {} };
    return migrate({ connections, ...seams, migrations: known, ...more });
  }

  /** Starts one run after the other until the work is done; returns how many were started. */
  async function startsDuring(store: Store, work: Promise<unknown>): Promise<number> {
    let started = 0;
    let done = false;
    const over = () => {
      done = true;
    };
    work.then(over, over);
    while (!done) {
      const [verdict] = await store.intake.createRuns("acme", [{ id: `s-${started}`, workflow: "w", input: 1 }]);
      expect(verdict).toMatchObject({ ok: true });
      started++;
    }
    await work;
    return started;
  }

  const index = async (schema: string, name: string) =>
    (
      await admin.query("select indisvalid as valid from pg_index where indexrelid = to_regclass($1)", [
        `${schema}.${name}`,
      ])
    ).rows;
  const sessions = async (): Promise<number[]> => {
    const { rows } = await admin.query<{ pid: number }>(
      "select pid from pg_stat_activity where datname = current_database() and application_name = 'durable-tape migration'",
    );
    return rows.map(({ pid }) => pid);
  };
  const waiting = async (): Promise<unknown[]> =>
    (await admin.query("select from pg_locks where not granted and relation = 'deadlock.gates'::regclass")).rows;
  /** A session that has started to build an index. */
  const untilBuilding = (schema: string, name: string) =>
    until(async () => (await index(schema, name)).length > 0, "no index is being built");

  it("one of three new processes builds the index, longer than any timeout, while starts continue", async () => {
    const { address, store } = await filled("built", 3);
    const known = later(slowIndex);
    const logged: string[][] = [[], [], []];
    const boundMs = 1_000;
    await closeGate();
    const opened = Promise.all(
      logged.map((events) =>
        open(`${address}&transaction_bound_ms=${boundMs}`, known, (_, event) => events.push(event)),
      ),
    );
    await untilBuilding("built", "runs_slow");
    const startedAt = performance.now();
    const longEnough = until(
      async () =>
        performance.now() - startedAt > boundMs + 1_100 && // the pool waits a second longer for a response than the server
        logged.every((events) => events.includes("store.migration_progress")),
      "a process logs nothing",
      25_000,
    );
    // No start has waited for the index: it is finished only after all of them have returned.
    expect(await startsDuring(store, Promise.race([longEnough, opened]))).toBeGreaterThan(10);
    expect(await index("built", "runs_slow")).toEqual([{ valid: false }]);
    await openGate();
    const [first] = await opened;
    expect(await index("built", "runs_slow")).toEqual([{ valid: true }]);
    expect(logged.filter((events) => events.includes("store.migrating"))).toHaveLength(1);
    expect((await first!.read.settings()).schema).toBe(9_001);
  });

  it("drops a half-built index after a kill and builds it again", async () => {
    const { address } = await filled("halves", 3);
    const known = later(slowIndex);
    await closeGate();
    const first = codeOf(migrating(address, known));
    await untilBuilding("halves", "runs_slow");
    for (const pid of await sessions()) await admin.query("select pg_terminate_backend($1)", [pid]);
    expect(await first).toBe("57P01");
    expect(await index("halves", "runs_slow")).toEqual([{ valid: false }]);
    await openGate();
    expect(await migrating(address, known)).toBe(9_001);
    expect(await index("halves", "runs_slow")).toEqual([{ valid: true }]);
  });

  it("a vanished client leaves no statement behind on the server", async () => {
    const { address } = await filled("gone", 3);
    await closeGate();
    let socket: { destroy(): void } | undefined;
    const wrap = (client: pg.Client): pg.Client => {
      socket = (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream;
      return client;
    };
    const lost = codeOf(migrating(address, later(slowIndex), { wrap }));
    await untilBuilding("gone", "runs_slow");
    const [pid] = await sessions();
    socket!.destroy();
    await lost;
    await until(async () => !(await sessions()).includes(pid!), "its statement works on");
    expect(await index("gone", "runs_slow")).toEqual([{ valid: false }]); // it had not finished
    await openGate();
  });

  it("an online migration ended after any statement is completed by the next run", async () => {
    const known = later(`-- online
      alter table tape.runs add column if not exists size bigint;
      -- in batches of tape.runs(journal)
      update tape.runs set size = 1 where size is null and journal > :after and journal <= :until;
      create index concurrently runs_size on tape.runs(size);
      drop index concurrently if exists tape.runs_phase;`);
    const { address } = await filled("ends", 1_200); // two batches
    const before = await admin.query("select pg_get_indexdef('ends.runs_phase'::regclass) as def");
    for (let k = 1, more = true; more; k++) {
      let sent = 0;
      const wrap = (client: pg.Client) =>
        new Proxy(client, {
          get(target, key) {
            const member: unknown = Reflect.get(target, key, target);
            if (key !== "query" || typeof member !== "function") return member;
            return async (...args: unknown[]) => {
              const answer = (await Reflect.apply(member, target, args)) as unknown;
              if (++sent === k) throw new Error("the process is gone");
              return answer;
            };
          },
        });
      more = (await migrating(address, known, { wrap }).catch(() => 0)) === 0;
      expect(await migrating(address, known)).toBe(9_001);
      const { rows } = await admin.query(`select count(*)::int as n, sum(size)::int as size from ends.runs`);
      expect(rows).toEqual([{ n: 1_200, size: 1_200 }]);
      expect([await index("ends", "runs_size"), await index("ends", "runs_phase")]).toEqual([[{ valid: true }], []]);
      await admin.query(
        `delete from ends.migrations where number > 9000; alter table ends.runs drop column size; ${before.rows[0].def}`,
      );
      if (!more) expect(k).toBeGreaterThan(15);
    }
  }, 90_000);

  it("behind a long reader it releases its lock and retries; starts continue, and it logs what it waits for", async () => {
    const { address, store } = await filled("reading", 1);
    const reader = await adminOf(url);
    await reader.query("begin; select 1 from reading.runs");
    const waits: unknown[] = [];
    const done = migrating(address, later("alter table tape.runs add column extra text;"), {
      log: (_, event, fields) => event === "store.migration_waits" && waits.push(fields),
    });
    const waited = until(async () => waits.length > 0, "it says nothing");
    await startsDuring(store, waited); // each within the time that a statement may wait
    expect(waits[0]).toMatchObject({
      waitingFor: "9001_later.sql",
      behind: expect.stringMatching(/^process \d+ \(admin\), idle in transaction/),
    });
    await reader.end();
    expect(await done).toBe(9_001);
  });

  it("a deadlock does not end the migration", async () => {
    const { address } = await filled("deadlock", 1);
    const rival = await adminOf(url);
    await rival.query("set deadlock_timeout = '10min'; begin; lock table deadlock.timers");
    let met = 0;
    const wrap = (client: pg.Client) =>
      new Proxy(client, {
        get(target, key) {
          const member: unknown = Reflect.get(target, key, target);
          if (key !== "query" || typeof member !== "function") return member;
          return async (...args: unknown[]) => {
            const second = typeof args[0] === "string" && args[0].includes('deadlock".timers');
            if (second && met === 0) {
              await Reflect.apply(member, target, ["set local deadlock_timeout = 10; set local lock_timeout = 0"]);
              void rival.query("lock table deadlock.gates").then(() => rival.query("commit"));
              // The server checks for a deadlock once, after ours has waited: theirs must wait by then.
              await until(async () => (await waiting()).length > 0, "the rival does not wait");
            }
            try {
              return (await Reflect.apply(member, target, args)) as unknown;
            } catch (error) {
              if ((error as { code?: string }).code === "40P01") met++;
              throw error;
            }
          };
        },
      });
    const known = later(
      "alter table tape.gates add column extra text;\nalter table tape.timers add column extra text;",
    );
    expect(await migrating(address, known, { wrap })).toBe(9_001);
    expect(met).toBe(1);
    await rival.end();
  });

  it("a process of the previous version prepares its statements again after a column changes type", async () => {
    const { address, store } = await filled("types", 1);
    const spec = (id: string) => ({ id, workflow: "w", version: "1", input: 1, budget: { usd: 7 } });
    const everything = async (id: string) => {
      const made = await store.intake.createRuns("acme", [spec(id)]);
      // The second one is read inside its transaction, with all that a lost response would need.
      const repeated = await store.intake.createRuns("acme", [spec(id)]);
      const found = await store.read.run("acme", id);
      const listed = await store.read.runs("acme", {});
      return { made, repeated, found: found?.version, listed: listed.length };
    };
    for (let k = 0; k < 12; k++) await Promise.all([0, 1, 2, 3].map((n) => everything(`before-${k}-${n}`)));
    await migrating(address, later("alter table tape.runs alter column version type varchar;"));
    const after = await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map((n) => everything(`after-${n}`)));
    for (const { made, repeated, found } of after) {
      expect(made).toMatchObject([{ ok: true, fresh: true }]);
      expect(repeated).toMatchObject([{ ok: true, fresh: false }]);
      expect(found).toBe("1");
    }
  });

  it("through a pooler it requires a direct address and reports that before any change", async () => {
    const { address } = await filled("pooled", 1);
    const pooler = await startPooler(url);
    const through = `${pooler.url}?schema=pooled&pooler=transaction`;
    expect(await codeOf(open(through, later(slowIndex)))).toBe("TAPE_BAD_STORE_URL");
    expect(await index("pooled", "runs_slow")).toEqual([]);
    await open(`${through}&listen_url=${encodeURIComponent(url)}`, later(slowIndex));
    expect(await index("pooled", "runs_slow")).toEqual([{ valid: true }]);
    await pooler.close();
    await (await open(address, later(slowIndex))).close();
  });

  it.each([
    ["a statement that cannot be repeated", "-- online\ncreate table tape.more(a bigint);"],
    ["an index that is not built concurrently", "-- online\ncreate index more on tape.runs(root);"],
    ["batches without a range", "-- online\n-- in batches of tape.runs(journal)\nupdate tape.runs set root = 1;"],
    [
      "batches in a transaction",
      "-- in batches of tape.runs(journal)\nupdate tape.runs set root = 1 where journal > :after and journal <= :until;",
    ],
  ])("a file with %s is refused when it is loaded", (_, text) => {
    expect(() => later(text)).toThrow(/9001_later.sql/);
  });
});

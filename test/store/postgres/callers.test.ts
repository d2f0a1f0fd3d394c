import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import type { Store, TransactionOps, WakeHint } from "../../../src/store/contract/store.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { claimant, heldRun, spec, step, tenant, unique } from "../../../testkit/conformance/frame.ts";
import { dropDatabase, freshDatabase } from "../../postgres/database.ts";
import { startProxy } from "../../postgres/proxy.ts";
import { done, outcomeOf, stepOn } from "../caller-outcomes.ts";
import { codeOf, type Scene, sceneOn, until } from "./scene.ts";

/** Transactions of the caller on PostgreSQL, beyond what the conformance suite asks of every store. */
let scene: Scene;
let within: TransactionOps;

beforeAll(async () => {
  scene = await sceneOn(inject("postgres18"));
  within = scene.store.within!;
  await scene.admin.query("create table seats(seat text primary key, run text)");
});
afterAll(() => scene.close());

async function connected(url = scene.url, config: pg.ClientConfig = {}): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, ...config });
  client.on("error", () => {});
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

function poolOn(url = scene.url): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  pool.on("error", () => {});
  onTestFinished(() => pool.end());
  return pool;
}

const seats = async (): Promise<string[]> =>
  (await scene.admin.query<{ seat: string }>("select seat from seats order by seat")).rows.map(({ seat }) => seat);

const held = (store: Store = scene.store) => heldRun(store, {}, claimant(undefined, { ttlMs: 60_000 }));
const take = (seat: string) => (client: unknown) =>
  (client as pg.Client).query("insert into seats values ($1)", [seat]).then(() => seat);

describe("the connection", () => {
  it.each<[string, (client: pg.Client) => Promise<unknown>]>([
    ["no transaction", async () => {}],
    ["a transaction that is over", async (client) => client.query("begin; commit")],
    ["an aborted transaction", (client) => client.query("begin; select 1/0").catch(() => {})],
    ["a read-only transaction", (client) => client.query("begin read only")],
  ])("with %s is refused with TAPE_NO_TRANSACTION", async (_title, prepare) => {
    const client = await connected();
    await prepare(client);
    const run = spec();
    expect(await codeOf(within.createRun(client, tenant, run))).toBe("TAPE_NO_TRANSACTION");
    await client.query("rollback");
    expect(await scene.store.read.run(tenant, run.id)).toBeUndefined();
  });

  it("to another database is refused, even to a copy of the store", async () => {
    const [empty, other] = [await freshDatabase(inject("postgres18")), await freshDatabase(inject("postgres18"))];
    const copy = `${other}c0`;
    await (await openPostgres({ url: other })).close(); // a template has no connections
    await scene.admin.query(`create database ${nameIn(copy)} template ${nameIn(other)}`);
    const store = await openPostgres({ url: other });
    onTestFinished(async () => {
      await store.close();
      for (const url of [empty, other, copy]) await dropDatabase(url);
    });
    for (const url of [empty, scene.url, copy]) {
      const client = await connected(url);
      await client.query("begin");
      expect(await codeOf(store.within!.createRun(client, tenant, spec()))).toBe("TAPE_OTHER_DATABASE");
      const transaction = store.within!.step(poolOn(url), take("none"));
      expect(await outcomeOf(transaction.execute())).toBe("body: TAPE_OTHER_DATABASE");
    }
    const right = await connected(other);
    await right.query("begin");
    expect(await codeOf(store.within!.createRun(right, tenant, spec()))).toBe("done");
  });

  it("without privileges is refused with TAPE_STORE_FORBIDDEN", async () => {
    const role = unique("guest").replace("-", "_");
    await scene.admin.query(`create role ${role} login; grant usage on schema tape to ${role}`);
    onTestFinished(() => scene.admin.query(`drop owned by ${role}; drop role ${role}`).then(() => {}));
    const client = await connected();
    await client.query(`set role ${role}; begin`);
    expect(await codeOf(within.createRun(client, tenant, spec()))).toBe("TAPE_STORE_FORBIDDEN");
  });

  it("is one client, not a pool; a step takes a pool", async () => {
    expect(await codeOf(within.createRun(poolOn(), tenant, spec()))).toBe("TAPE_BAD_INPUT");
    for (const none of [undefined, {}, "postgres://", 7, await connected()]) {
      expect(await outcomeOf(within.step(none, take("none")).execute())).toBe("body: TAPE_BAD_INPUT");
    }
  });

  it("of a closed store is refused", async () => {
    const store = await openPostgres({ url: scene.url });
    const client = await connected();
    await client.query("begin");
    await store.close();
    expect(await codeOf(store.within!.createRun(client, tenant, spec()))).toBe("TAPE_STORE_CLOSED");
  });

  it("may parse types in its own way, and be used by several calls at once", async () => {
    const client = await connected(scene.url, {
      types: { getTypeParser: () => (text: string) => `odd ${text}` } as pg.CustomTypesConfig,
    });
    const run = await held();
    await client.query("begin");
    const runs = [spec(), spec(), spec()];
    const created = await Promise.all([
      ...runs.map((one) => within.createRun(client, tenant, one)),
      within.signal(client, tenant, run.id, { name: "go", value: 1 }),
    ]);
    await client.query("commit");
    expect(new Set(created.map((one) => ("journal" in one ? one.journal : one.n))).size).toBe(4);
    for (const { id } of runs) expect((await scene.store.read.run(tenant, id))?.status).toBe("RUNNABLE");
  });

  it("commits durably and is bounded, whatever its session says", async () => {
    const client = await connected();
    await client.query("set synchronous_commit = off; set idle_in_transaction_session_timeout = 0; begin");
    await within.createRun(client, tenant, spec());
    const { rows } = await client.query(
      "select current_setting('synchronous_commit') as sync, current_setting('idle_in_transaction_session_timeout') as idle",
    );
    expect(rows).toEqual([{ sync: "on", idle: "5s" }]);
    await client.query("commit");
    const after = await client.query("select current_setting('idle_in_transaction_session_timeout') as idle");
    expect(after.rows).toEqual([{ idle: "0" }]);
  });
});

it("wake hints arrive with the commit, in this process, too, and never after a rollback", async () => {
  const other = await scene.open();
  const received: string[] = [];
  const listen = (store: Store, who: string): void => {
    const stop = store.onWake((wake: WakeHint) => {
      if (wake.of === "reactor" && wake.workflow !== undefined) received.push(`${who} ${wake.workflow}`);
    });
    onTestFinished(stop);
  };
  listen(scene.store, "own");
  listen(other, "other");
  const listening = async (): Promise<boolean> =>
    (await scene.admin.query("select 1 from pg_stat_activity where datname = current_database() and query ~ '^listen'"))
      .rowCount === 2;
  await until(listening, "nothing listens");
  const client = await connected();
  for (const [workflow, end] of [
    ["lost", "rollback"],
    ["kept", "commit"],
  ] as const) {
    await client.query("begin");
    await within.createRun(client, tenant, spec({ workflow }));
    expect(received).toEqual([]);
    await client.query(end);
  }
  await until(async () => received.length >= 2, "no hint arrived");
  expect(received.toSorted()).toEqual(["other kept", "own kept"]);
});

it("a stricter isolation level gets a serialization failure, and the caller may try again", async () => {
  const run = await held();
  const client = await connected();
  await client.query("begin isolation level repeatable read");
  await client.query("select 1 from seats");
  await scene.store.intake.signal(tenant, run.id, { name: "go", value: 1 });
  const signal = { name: "go", value: 2 };
  expect(await codeOf(within.signal(client, tenant, run.id, signal))).toBe("TAPE_STORE_BUSY");
  await client.query("rollback; begin isolation level serializable");
  expect(await within.signal(client, tenant, run.id, signal)).toEqual({ n: 2, duplicate: false });
  await client.query("commit");
});

it("[INV-5] a signal that is refused after its note was counted leaves no note", async () => {
  const store = await openPostgres({ url: scene.url, limits: { inboxNotes: 1 } });
  onTestFinished(() => store.close());
  const run = await held(store);
  const client = await connected();
  const seat = unique("seat");
  await client.query("begin");
  await store.within!.signal(client, tenant, run.id, { name: "go", value: 1 });
  const second = store.within!.signal(client, tenant, run.id, { name: "go", value: 2 });
  expect(await codeOf(second)).toBe("TAPE_TOO_LARGE");
  await take(seat)(client);
  await client.query("commit");
  expect(await seats()).toContain(seat);
  expect(await store.fenced.append(run.fence, { after: 1, records: [step(0)] })).toEqual({ head: 2, notes: 1 });
});

it("an open start of a tenant with quotas delays no other tenant", async () => {
  const audit = { by: "ann", reason: "drill" };
  for (const name of ["first", "second"]) {
    await scene.store.intake.setQuota(name, { runs: 5, bytes: 1_000_000 }, audit);
    await scene.store.intake.createRuns(name, [spec()]);
  }
  // The records were measured long ago, so the next start measures again.
  await scene.admin.query("update tape.quotas set metered_at = 0");
  const client = await connected();
  await client.query("begin");
  await within.createRun(client, "first", spec());
  await scene.admin.query("set lock_timeout = 500");
  const { rows } = await scene.admin.query("select tenant from tape.quotas for update skip locked");
  const free = rows.map((row) => row.tenant);
  expect(free).toEqual(expect.arrayContaining(["", "second"]));
  expect(free).not.toContain("first");
  await client.query("rollback");
  await scene.store.intake.setQuota("first", { runs: null, bytes: null }, audit);
  await scene.store.intake.setQuota("second", { runs: null, bytes: null }, audit);
});

describe("a step", () => {
  it.each<[string, string, (client: pg.Client) => Promise<unknown>]>([
    ["commits itself", "body: TAPE_NO_TRANSACTION", (client) => client.query("rollback")],
    ["starts another transaction", "body: TAPE_NO_TRANSACTION", (client) => client.query("rollback; begin")],
    ["ignores a failed statement", "body: TAPE_NO_TRANSACTION", (client) => client.query("select 1/0").catch(() => 0)],
    ["violates a constraint", "body: 23505", (client) => client.query("insert into seats values ('a'), ('a')")],
    [
      "violates a deferred constraint",
      "body: 23503",
      async (client) => {
        await client.query("create temp table owners(id int primary key) on commit drop");
        await client.query(
          "create temp table pets(owner int references owners deferrable initially deferred) on commit drop",
        );
        await client.query("insert into pets values (1)");
      },
    ],
    ["meets a deadlock", "TAPE_STORE_BUSY", (client) => client.query(raise("40P01"))],
    ["cannot be serialized", "TAPE_STORE_BUSY", (client) => client.query(raise("40001"))],
  ])("whose body %s ends with %s and leaves nothing", async (_title, expected, misbehave) => {
    const run = await held();
    const before = await seats();
    const transaction = within.step(poolOn(), async (client) => {
      await take(unique("seat"))(client);
      await misbehave(client as pg.Client);
    });
    expect(await outcomeOf(stepOn(transaction, run))).toBe(expected);
    expect(await seats()).toEqual(before);
    expect(await scene.store.read.journal(tenant, { run: run.id })).toHaveLength(1);
  });

  it("whose body leaves the transaction idle for too long fails with the reason", async () => {
    const store = await scene.open("?transaction_bound_ms=100");
    const run = await held(store);
    const transaction = store.within!.step(poolOn(), async (client) => {
      await take(unique("seat"))(client);
      const ended = new Promise((resolve) => (client as pg.Client).once("end", resolve));
      await ended;
    });
    expect(await outcomeOf(stepOn(transaction, run))).toBe("body: TAPE_NO_TRANSACTION");
  });

  it("makes a takeover wait only while it commits", async () => {
    const run = await held();
    const transaction = within.step(poolOn(), take(unique("seat")));
    await transaction.execute();
    const target = { target: { run: run.id }, claimant: claimant(), nonce: 5n, expect: "any" as const };
    const taken = await scene.store.claim.acquire(tenant, { ...target, by: "ann", auditReason: "drill" });
    expect(taken.ok).toBe(true);
    expect(await outcomeOf(transaction.commit(run.fence, 1, done))).toBe("TAPE_FENCED");
  });

  it.each(["after", "before"] as const)(
    "[INV-7] whose commit was cut %s it reached the server is asked about, never guessed",
    async (when) => {
      const proxy = await startProxy(scene.url);
      onTestFinished(() => proxy.close());
      const run = await held();
      const seat = unique("seat");
      const commit = /^commit\0$/;
      const pool = poolOn(proxy.url);
      const transaction = within.step(pool, take(seat));
      await transaction.execute();
      const cut = when === "after" ? proxy.cutAfterRequest(commit) : proxy.cutBeforeRequest(commit);
      const outcome = await outcomeOf(transaction.commit(run.fence, 1, done));
      await cut;
      const landed = when === "after";
      expect(outcome).toBe(landed ? "done" : "TAPE_STORE_UNREACHABLE");
      expect((await seats()).includes(seat)).toBe(landed);
      expect(await scene.store.read.journal(tenant, { run: run.id })).toHaveLength(landed ? 2 : 1);
      if (landed) return;
      expect(await outcomeOf(stepOn(within.step(pool, take(seat)), run))).toBe("done");
      expect((await seats()).filter((one) => one === seat)).toHaveLength(1);
    },
  );

  it("returns its connection to the pool, however it ends", async () => {
    const pool = poolOn();
    const run = await held();
    const dropped = within.step(pool, take(unique("seat")));
    await dropped.execute();
    expect(pool.idleCount).toBe(0);
    await dropped.rollback();
    await outcomeOf(within.step(pool, () => Promise.reject(new Error("no"))).execute());
    await stepOn(within.step(pool, take(unique("seat"))), run);
    expect([pool.idleCount, pool.totalCount, pool.waitingCount]).toEqual([1, 1, 0]);
  });
});

const nameIn = (url: string): string => new URL(url).pathname.slice(1);
const raise = (code: string): string => `do $$ begin raise exception using errcode = '${code}'; end $$`;

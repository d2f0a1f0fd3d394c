import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { beforeEach, expect, it } from "vitest";
import { guardExternalSqlite, guardSqlite } from "../../src/guard/sqlite.ts";
import { Tape } from "../../src/host/tape.ts";
import { makeFence } from "../../src/model/fence.ts";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { noRunner } from "../host/stage.ts";

const name = "day-end";
let folder = "";
let first: Tape;
let second: Tape;
let database: DatabaseSync;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tape-guard-"));
  const store = `sqlite:${join(folder, "tape.db")}`;
  first = await Tape.open({ store, runner: noRunner, work: false });
  second = await Tape.open({ store, runner: noRunner, work: false });
  database = new DatabaseSync(join(folder, "tape.db"));
  database.exec("create table totals(total integer); insert into totals values (0)");
  return async () => {
    database.close();
    await Promise.all([first.close(), second.close()]);
    await rm(folder, { recursive: true, force: true });
  };
});

it("makes a takeover wait for the guarded transaction, then refuses the next one", async () => {
  const lease = await first.leases.acquire(name);
  database.exec("begin immediate");
  guardSqlite(database, lease);
  database.exec("update totals set total = 1");
  const taking = second.leases.takeover(name, { reason: "test" });
  expect(await first.leases.explain(name)).toMatchObject({ token: 1n });
  database.exec("commit");
  expect((await taking).token).toBe(2n);
  database.exec("begin immediate");
  expect(() => guardSqlite(database, lease)).toThrow("TAPE_FENCED");
  database.exec("rollback");
});

it("refuses the write of a transaction that only read before a takeover", async () => {
  const lease = await first.leases.acquire(name);
  database.exec("begin"); // not immediate
  guardSqlite(database, lease);
  await second.leases.takeover(name, { reason: "test" });
  expect(() => database.exec("update totals set total = 1")).toThrow("locked");
  database.exec("rollback");
  expect(database.prepare("select total from totals").get()).toEqual({ total: 0 });
});

it.each(["inline", "outbox"] as const)("inside an %s effect, fx is the holder", async (dispatch) => {
  const add = effect(
    "add",
    (n: number, fx) => {
      database.exec("begin immediate");
      try {
        guardSqlite(database, fx);
        database.prepare("update totals set total = total + ?").run(n);
        const { tenant, journal, token, nonce } = fx.fence;
        const stale = { ...fx, fence: makeFence(tenant, journal, token - 1n, nonce) };
        expect(() => guardSqlite(database, stale)).toThrow("TAPE_FENCED");
      } finally {
        database.exec("commit");
      }
    },
    { dispatch, semantics: "idempotent" },
  );
  const flow = workflow("flow", async () => {
    await add(3);
  });
  const app = await Tape.open({ store: first.store, runner: createRunner({ workflows: [flow], effects: [add] }) });
  await (await app.start(flow, undefined)).result();
  await app.close();
  expect(database.prepare("select total from totals").get()).toEqual({ total: 3 });
});

it("throws outside a transaction and for a lost lease", async () => {
  const lease = await first.leases.acquire(name);
  expect(() => guardSqlite(database, lease)).toThrow("TAPE_BAD_INPUT");
  expect(() => guardExternalSqlite(database, lease)).toThrow("TAPE_BAD_INPUT");
  const { prepare, exec } = database;
  const nameless = { prepare: prepare.bind(database), exec: exec.bind(database) };
  expect(() => guardSqlite(nameless, lease)).toThrow("TAPE_BAD_INPUT"); // it cannot say whether there is one
  guardSqlite({ ...nameless, inTransaction: true }, lease); // better-sqlite3's word for it
  await lease.release();
  database.exec("begin immediate");
  expect(() => guardSqlite(database, lease)).toThrow("TAPE_LEASE_LOST");
  const { fence, token } = lease;
  expect(() => guardSqlite(database, { name, fence, token })).toThrow("TAPE_FENCED");
  database.exec("rollback");
});

it("refuses lower tokens per scope in another file, up to 2^63", () => {
  const other = new DatabaseSync(join(folder, "other.db"));
  const bring = (scope: string, token: bigint): string => {
    other.exec("begin immediate");
    try {
      guardExternalSqlite(other, { name: scope, token });
      other.exec("commit");
      return "let through";
    } catch (error) {
      other.exec("rollback");
      return (error as { code: string }).code;
    }
  };
  expect(["9", "9", "10", "9"].map((token) => bring("a", BigInt(token)))).toEqual([
    "let through",
    "let through",
    "let through",
    "TAPE_FENCED",
  ]);
  expect(bring("b", 1n)).toBe("let through");
  expect(bring("c", 2n ** 63n - 1n)).toBe("let through");
  expect(bring("c", 2n ** 63n - 2n)).toBe("TAPE_FENCED");
  other.close();
});

it("forgets the token of a rolled back transaction", () => {
  const other = new DatabaseSync(join(folder, "other.db"));
  other.exec("begin immediate");
  guardExternalSqlite(other, { name, token: 5n });
  other.exec("rollback; begin immediate");
  guardExternalSqlite(other, { name, token: 4n });
  other.exec("commit; begin immediate");
  expect(() => guardExternalSqlite(other, { name, token: 3n })).toThrow("TAPE_FENCED");
  other.exec("rollback");
  other.close();
});

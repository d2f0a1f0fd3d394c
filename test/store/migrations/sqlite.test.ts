import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadMigrations, newestOf } from "../../../src/store/sql/migrations.ts";
import { migrations } from "../../../src/store/sqlite/migrate.ts";
import { openSqlite } from "../../../src/store/sqlite/open.ts";
import { schemaFiles, sqliteSchema } from "../../../tools/schema.ts";
import { codeOf } from "../postgres/scene.ts";
import { type Place, placeForFile } from "../sqlite/files.ts";
import { dyingAfter, imageOf } from "./crash.ts";

const child = fileURLToPath(new URL("child.ts", import.meta.url));
const committed = readFileSync(schemaFiles.sqlite, "utf8");

/** Opens the file in the usual way and sees that it is whole: the schema, one row of the ledger, a store that works. */
async function expectWhole(file: string): Promise<void> {
  const store = await openSqlite({ file, restored: true }); // an image of a crash lies beside its original
  const [created] = await store.intake.createRuns("acme", [{ id: "run", workflow: "w", input: 1 }]);
  expect(created).toMatchObject({ ok: true, fresh: true });
  await store.close();
  const db = new DatabaseSync(file);
  expect(sqliteSchema(db)).toBe(committed);
  expect(db.prepare("select number, name from migrations").all()).toEqual(
    migrations.map(({ number, name }) => ({ number, name })),
  );
  expect(db.prepare("select count(*) as n from meta").get()).toEqual({ n: 1 });
  db.close();
}

describe("SQLite migrations", () => {
  let place: Place;
  beforeEach(() => {
    place = placeForFile();
  });
  afterEach(() => place.close());

  /** How many statements opening a fresh file takes. */
  async function statements(): Promise<number> {
    const all = dyingAfter(Number.POSITIVE_INFINITY, () => {});
    await (await place.open({ open: all.open })).close();
    return all.count();
  }

  it("killed after any statement and run again, the schema is whole", async () => {
    const total = await statements();
    expect(total).toBeGreaterThan(40);
    for (let k = 1; k <= total; k++) {
      const file = join(place.folder, `${k}.db`);
      const image = join(place.folder, `${k}-image.db`);
      const { open } = dyingAfter(k, () => imageOf(file, image));
      await expect(openSqlite({ file, open }), `statement ${k}`).rejects.toThrow(/died after|is gone/);
      await expectWhole(image); // as the disk was at that moment
      if (k % 5 === 0) await expectWhole(file); // as the process's end left it
    }
  });

  it("killed by the system at the first change, in the middle and at the COMMIT, likewise", async () => {
    const total = await statements();
    const killed = [12, Math.floor(total / 2), total - 3].map(async (k) => {
      const file = join(place.folder, `${k}.db`);
      const killed = spawn(process.execPath, [child, file, "kill", String(k)], { stdio: "ignore" });
      const [, signal] = await once(killed, "exit");
      expect(signal).toBe("SIGKILL");
      await expectWhole(file);
    });
    await Promise.all(killed);
  });

  it("three processes open a fresh file at once: all are served, it is migrated once", async () => {
    const processes = Array.from({ length: 3 }, () => {
      const started = spawn(process.execPath, [child, place.file, "open"], { stdio: ["pipe", "pipe", "inherit"] });
      const lines = started.stdout.setEncoding("utf8");
      return { started, ready: once(lines, "data"), lines };
    });
    await Promise.all(processes.map(({ ready }) => ready));
    const answers = processes.map(({ lines }) => once(lines, "data"));
    for (const { started } of processes) started.stdin.write("go\n");
    for (const [line] of await Promise.all(answers))
      expect(JSON.parse(String(line))).toEqual({ ok: true, schema: newestOf(migrations) });
    await expectWhole(place.file);
    const { n } = place.raw().prepare("select count(*) as n from runs").get() as { n: number };
    expect(n).toBe(4); // three of theirs and one of ours: none got a number twice
  });

  it("a store of schema 3 keeps its budgets, and they are found by their tenant", async () => {
    const spec = { id: "old", workflow: "w", input: 1, budget: { usd: 7 } };
    const old = await openSqlite({ file: place.file });
    await old.intake.createRuns("acme", [spec]);
    await old.close();
    const db = place.raw();
    db.exec(`drop index budgets_tenant; drop index runs_created; drop index runs_phase; drop index effects_doubt;
      alter table budgets drop column tenant; delete from migrations where number = 4`);
    db.close();
    const store = await openSqlite({ file: place.file });
    const { budgets } = await store.read.spend("acme");
    expect(budgets).toMatchObject([{ runId: "old", unit: "usd", cap: 7 }]);
    expect(await store.read.runs("acme", { prefix: "ol" })).toMatchObject([{ id: "old" }]);
    await store.close();
    const whole = new DatabaseSync(place.file);
    expect(sqliteSchema(whole)).toBe(committed);
    whole.close();
  });

  it("a file that has yet to be migrated is waited for as long as another process keeps it locked", async () => {
    await (await place.open()).close();
    const more = loadMigrations(new Map([["9001_later.sql", "create table later(a integer);"]]));
    const said: string[] = [];
    const holder = place.raw();
    holder.exec("begin immediate");
    const opening = place.open({
      busyMs: 20,
      migrations: [...migrations, ...more],
      log: (_, event) => {
        said.push(event);
        if (holder.isTransaction) holder.exec("rollback");
      },
    });
    expect((await (await opening).read.settings()).schema).toBe(9_001);
    expect(said).toEqual(["store.migration_waits", "store.migrating", "store.migrated"]);
  });

  it.each([
    ["a newer schema", "insert into migrations values (9999, '9999_later.sql', 'x')", "TAPE_SCHEMA_NEWER"],
    ["an edited past", "update migrations set checksum = 'x'", "TAPE_SCHEMA_CHANGED"],
    ["a past that we do not know", "insert into migrations values (0, '0000_before.sql', 'x')", "TAPE_SCHEMA_CHANGED"],
  ])("%s is refused and nothing is changed", async (_, edit, code) => {
    await (await place.open()).close();
    const db = place.raw();
    db.exec(edit);
    db.close();
    const bytes = () => createHash("sha256").update(readFileSync(place.file)).digest("hex");
    const before = bytes();
    expect(await codeOf(openSqlite({ file: place.file }))).toBe(code);
    expect(bytes()).toBe(before);
  });
});

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadMigrations, type Migration, newestOf } from "../../../src/store/sql/migrations.ts";
import { migrations } from "../../../src/store/sqlite/migrate.ts";
import { openSqlite } from "../../../src/store/sqlite/open.ts";
import { Statements } from "../../../src/store/sqlite/statements.ts";
import { schemaFiles, sqliteSchema } from "../../../tools/schema.ts";
import { codeOf } from "../postgres/scene.ts";
import { type Place, placeForFile } from "../sqlite/files.ts";
import { dyingAfter, imageOf } from "./crash.ts";
import { laterSqlite } from "./later.ts";

const child = fileURLToPath(new URL("child.ts", import.meta.url));
const committed = readFileSync(schemaFiles.sqlite, "utf8");

/** The schema that these migrations create, one statement after the other and without a store. */
function schemaOf(known: readonly Migration[]): string {
  const db = new DatabaseSync(":memory:");
  db.exec(Statements.all.get("migrations.create")!.text);
  for (const { steps } of known) for (const { text } of steps) db.exec(text);
  const schema = sqliteSchema(db);
  db.close();
  return schema;
}
const later = schemaOf(laterSqlite);

/**
 * Opens the file and checks that it is complete: the schema, the list of migrations, one row of meta, a working store.
 */
async function expectWhole(file: string, known: readonly Migration[] = laterSqlite): Promise<void> {
  const store = await openSqlite({ file, migrations: known, restored: true }); // a crash image is next to its original
  const [created] = await store.intake.createRuns("acme", [{ id: "run", workflow: "w", input: 1 }]);
  expect(created).toMatchObject({ ok: true, fresh: true });
  await store.close();
  const db = new DatabaseSync(file);
  expect(sqliteSchema(db)).toBe(known === migrations ? committed : later);
  expect(db.prepare("select number, name from migrations").all()).toEqual(
    known.map(({ number, name }) => ({ number, name })),
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
    await (await place.open({ open: all.open, migrations: laterSqlite })).close();
    return all.count();
  }

  it("a fresh file has the documented schema", async () => {
    expect(schemaOf(migrations)).toBe(committed);
    await expectWhole(place.file, migrations);
  });

  it("completes the schema when run again after a kill at any statement", async () => {
    const total = await statements();
    expect(total).toBeGreaterThan(40);
    for (let k = 1; k <= total; k++) {
      const file = join(place.folder, `${k}.db`);
      const image = join(place.folder, `${k}-image.db`);
      const { open } = dyingAfter(k, () => imageOf(file, image));
      await expect(openSqlite({ file, open, migrations: laterSqlite }), `statement ${k}`).rejects.toThrow(
        /died after|is gone/,
      );
      await expectWhole(image); // the disk at that moment
      if (k % 5 === 0) await expectWhole(file); // as the process left it
    }
  });

  it("likewise when the system kills it at the first change, in the middle and at the COMMIT", async () => {
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

  it("three processes open a fresh file at once: it is migrated once and all are served", async () => {
    const processes = Array.from({ length: 3 }, () => {
      const started = spawn(process.execPath, [child, place.file, "open"], { stdio: ["pipe", "pipe", "inherit"] });
      const lines = started.stdout.setEncoding("utf8");
      return { started, ready: once(lines, "data"), lines };
    });
    await Promise.all(processes.map(({ ready }) => ready));
    const answers = processes.map(({ lines }) => once(lines, "data"));
    for (const { started } of processes) started.stdin.write("go\n");
    for (const [line] of await Promise.all(answers))
      expect(JSON.parse(String(line))).toEqual({ ok: true, schema: newestOf(laterSqlite) });
    await expectWhole(place.file);
    const { n } = place.raw().prepare("select count(*) as n from runs").get() as { n: number };
    expect(n).toBe(4); // three of theirs and one of ours: no number was issued twice
  });

  /** A store of this version with a run that has a budget. */
  async function withBudget(file: string): Promise<void> {
    const store = await openSqlite({ file });
    await store.intake.createRuns("acme", [{ id: "old", workflow: "w", input: 1, budget: { usd: 7 } }]);
    await store.close();
  }

  /** The store of the next version has what the store of this version wrote. */
  async function expectBudget(file: string): Promise<void> {
    const store = await openSqlite({ file, migrations: laterSqlite, restored: true });
    expect((await store.read.spend("acme")).budgets).toMatchObject([{ runId: "old", unit: "usd", cap: 7 }]);
    expect(await store.read.runs("acme", { prefix: "ol" })).toMatchObject([{ id: "old" }]);
    await store.close();
    const db = new DatabaseSync(file);
    expect(db.prepare("select workflow, cap from budgets").all()).toEqual([{ workflow: "w", cap: 7 }]);
    db.close();
  }

  it("keeps the rows of a store of the previous version and fills new columns from them", async () => {
    await withBudget(place.file);
    await expectBudget(place.file);
    await expectWhole(place.file);
  });

  it("an upgrade killed after any statement has applied each file completely or not at all", async () => {
    await withBudget(place.file);
    for (let k = 1, done = 0; done < 2; k++) {
      const file = join(place.folder, `${k}.db`);
      const image = join(place.folder, `${k}-image.db`);
      imageOf(place.file, file);
      const { open } = dyingAfter(k, () => imageOf(file, image));
      const options = { file, open, migrations: laterSqlite, restored: true };
      await expect(openSqlite(options), `statement ${k}`).rejects.toThrow(/died after|is gone/);
      const db = new DatabaseSync(image);
      done = db.prepare("select number from migrations where number > 9000").all().length;
      const made = "select name from sqlite_schema where name in ('remarks', 'remarks_text', 'budgets_workflow')";
      expect(db.prepare(made).all(), `statement ${k}`).toHaveLength([0, 2, 3][done]!);
      db.close();
      await expectBudget(image);
      await expectWhole(image);
    }
  });

  it("waits for a file that is not migrated yet while another process keeps it locked", async () => {
    await (await place.open()).close();
    const more = loadMigrations(new Map([["9001_later.sql", "create table later(a integer);"]]));
    const logged: string[] = [];
    const holder = place.raw();
    holder.exec("begin immediate");
    const opening = place.open({
      busyMs: 20,
      migrations: [...migrations, ...more],
      log: (_, event) => {
        logged.push(event);
        if (holder.isTransaction) holder.exec("rollback");
      },
    });
    expect((await (await opening).read.settings()).schema).toBe(9_001);
    expect(logged).toEqual(["store.migration_waits", "store.migrating", "store.migrated"]);
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

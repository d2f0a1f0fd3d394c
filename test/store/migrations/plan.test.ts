import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { migrations } from "../../../src/store/postgres/migrate.ts";
import { planPostgres } from "../../../src/store/postgres/migrating/plan.ts";
import { loadMigrations } from "../../../src/store/sql/migrations.ts";
import { planSqlite } from "../../../src/store/sqlite/plan.ts";
import { type Scene, sceneOn } from "../postgres/scene.ts";
import { placeForFile } from "../sqlite/files.ts";
import { laterPostgres, laterSqlite } from "./later.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await sceneOn(inject("postgres18"));
});
afterAll(() => scene.close());

const later = (...texts: readonly string[]) =>
  loadMigrations(new Map(texts.map((text, k) => [`${9001 + k}_a.sql`, text])));
const files = [
  "-- online\nalter table tape.runs add column if not exists a text;\n-- in batches of tape.runs(journal)\nupdate tape.runs set a = '' where journal > :after and journal <= :until;\ncreate index concurrently a on tape.runs(a);",
  "create table tape.b(a bigint);\ncreate index b on tape.b(a);\ncreate index c on tape.runs(phase);\nalter table tape.runs alter column phase type varchar;",
];

it("shows what each statement blocks and for about how long, and changes nothing", async () => {
  expect(await planPostgres(scene.url)).toEqual([]);
  await scene.admin.query("update pg_class set reltuples = 6000000 where oid = 'tape.runs'::regclass");
  const steps = await planPostgres(scene.url, [...migrations, ...later(...files)]);
  expect(steps.map(({ migration, blocks, rows, seconds }) => [migration, blocks, rows, seconds])).toEqual([
    ["9001_a.sql", "all access", 6_000_000, 0],
    ["9001_a.sql", "single rows", 6_000_000, 300],
    ["9001_a.sql", "nothing", 6_000_000, 75],
    ["9002_a.sql", "nothing", undefined, 0],
    ["9002_a.sql", "nothing", undefined, 0],
    ["9002_a.sql", "writes", 6_000_000, 20],
    ["9002_a.sql", "all access", 6_000_000, 30],
  ]);
  expect(await planPostgres(scene.url)).toEqual([]);
});

it("plans no waiting when the schema does not exist", async () => {
  const steps = await planPostgres(`${scene.url}?schema=elsewhere`, laterPostgres);
  expect(steps.length).toBeGreaterThan(40);
  expect(steps.every(({ seconds }) => seconds === 0)).toBe(true);
  expect((await scene.admin.query("select to_regnamespace('elsewhere') as there")).rows).toEqual([{ there: null }]);
});

it("shows that every writer of a SQLite file waits", async () => {
  const place = placeForFile();
  expect(planSqlite(place.file).length).toBeGreaterThan(40);
  await (await place.open()).close();
  expect(planSqlite(place.file)).toEqual([]);
  const steps = planSqlite(place.file, laterSqlite);
  expect(steps.map(({ migration, blocks }) => [migration, blocks])).toEqual([
    ["9001_remarks.sql", "nothing"],
    ["9001_remarks.sql", "nothing"],
    ["9002_budgets.sql", "writes"],
    ["9002_budgets.sql", "writes"],
    ["9002_budgets.sql", "writes"],
    ["9002_budgets.sql", "writes"],
  ]);
  await place.close();
});

import { DatabaseSync } from "node:sqlite";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { Store } from "../../src/store/contract/store.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { sceneOn } from "./postgres/scene.ts";
import { placeForFile } from "./sqlite/files.ts";

const acme = "acme";
const listed = async (store: Store, stage: string): Promise<string[]> =>
  (await store.read.runs(acme, { labels: { stage } })).map(({ id }) => id).sort();
const start = (store: Store, id: string, labels: Record<string, string>) =>
  store.intake.createRuns(acme, [{ id, workflow: "w", input: 1, labels }]);
/** Every twentieth report of a process adopts labels, the first one too. */
const report = (store: Store) => store.intake.reportProcess(acme, { owner: "o", label: "l", body: {} });

/** The rows that a process of the previous version would have written. */
const asBefore = ["delete from run_labels", "update runs set labelled = null"];

describe("labels that a process of the previous version has written", () => {
  it("SQLite lists them at once, adopts them with a report, and fills the table when it migrates", async () => {
    const place = placeForFile();
    onTestFinished(() => place.close());
    const store = await place.open();
    await start(store, "one", { stage: "paid", long: "x".repeat(128) });
    await start(store, "two", { stage: "open" });
    const db = place.raw();
    for (const text of asBefore) db.exec(text);
    expect(await listed(store, "paid")).toEqual(["one"]);
    const count = (): unknown => db.prepare("select count(*) as n from run_labels").get()?.n;
    expect(count()).toBe(0);
    await report(store);
    expect(count()).toBe(3);
    expect(await listed(store, "paid")).toEqual(["one"]);
    await store.close();
    const raw = new DatabaseSync(place.file);
    for (const text of ["drop table run_labels", "drop index runs_unlisted", "alter table runs drop column labelled"])
      raw.exec(text);
    raw.exec("delete from migrations where name like '%labels%'");
    raw.close();
    const migrated = await place.open();
    expect(count()).toBe(3);
    expect(db.prepare("select count(*) as n from runs where labelled is null").get()?.n).toBe(0);
    expect(await listed(migrated, "open")).toEqual(["two"]);
  });

  it("PostgreSQL lists them at once, adopts them with a report, and fills the table when it migrates", async () => {
    const scene = await sceneOn(inject("postgres18"));
    onTestFinished(() => scene.close());
    const { admin } = scene;
    const store = await scene.open();
    await start(store, "one", { stage: "paid", long: "x".repeat(128) });
    await start(store, "two", { stage: "open" });
    for (const text of asBefore) await admin.query(text.replace(/(run_labels|runs)/, "tape.$1"));
    expect(await listed(store, "paid")).toEqual(["one"]);
    const count = async (where = ""): Promise<number> =>
      Number((await admin.query(`select count(*) as n from tape.${where}`)).rows[0].n);
    expect(await count("run_labels")).toBe(0);
    await report(store);
    expect(await count("run_labels")).toBe(3);
    expect(await listed(store, "paid")).toEqual(["one"]);
    await store.close();
    await admin.query("drop table tape.run_labels; alter table tape.runs drop column labelled");
    await admin.query("delete from tape.migrations where name like '%labels%'");
    const migrated = await openPostgres({ url: scene.url });
    onTestFinished(() => migrated.close());
    expect(await count("run_labels")).toBe(3);
    expect(await count("runs where labelled is null")).toBe(0);
    expect(await listed(migrated, "open")).toEqual(["two"]);
  });
});

import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { Store } from "../../src/store/contract/store.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { type Scene, sceneOn } from "./postgres/scene.ts";

const tenant = "acme";
const report = (store: Store, owner: string) => store.intake.reportProcess(tenant, { owner, label: owner, body: 1 });
/** One report in twenty deletes the rows of dead processes. */
const reportOften = async (store: Store, owner: string): Promise<void> => {
  for (let k = 0; k < 20; k++) await report(store, owner);
};
const owners = async (store: Store) => (await store.read.processes(tenant)).map(({ owner }) => owner);

describe("SQLite: silent processes", () => {
  const open = (clock: ManualClock) => openSqlite({ file: ":memory:", clock });
  it("are listed for a minute, with the time since their last report", async () => {
    const clock = new ManualClock();
    const store = await open(clock);
    await report(store, "one");
    await clock.elapse(20_000);
    await report(store, "two");
    await clock.elapse(40_000);
    expect((await store.read.processes(tenant)).map(({ owner, agoMs }) => [owner, agoMs])).toEqual([
      ["one", 60_000],
      ["two", 40_000],
    ]);
    await clock.elapse(1);
    expect(await owners(store)).toEqual(["two"]);
    clock.stepWall(-300_000);
    expect((await store.read.processes(tenant)).map(({ agoMs }) => agoMs)).toEqual([0, 0]);
    await store.close();
  });

  it("are deleted after ten minutes by later reports", async () => {
    const clock = new ManualClock();
    const store = await open(clock);
    await report(store, "one");
    await clock.elapse(600_000);
    await reportOften(store, "two");
    clock.stepWall(-600_000);
    expect(await owners(store)).toEqual(["one", "two"]);
    await clock.elapse(600_001);
    await reportOften(store, "two");
    clock.stepWall(-600_001);
    expect(await owners(store)).toEqual(["two"]);
    await store.close();
  });
});

describe("PostgreSQL: silent processes", () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await sceneOn(inject("postgres18"));
  });
  afterAll(() => scene.close());
  const age = (owner: string, ms: number) =>
    scene.admin.query("update tape.processes set at = at - $1 where owner = $2", [ms, owner]);
  const kept = async () =>
    (await scene.admin.query("select owner from tape.processes order by owner")).rows.map(({ owner }) => owner);

  it("are listed for a minute, and deleted after ten by later reports", async () => {
    const { store } = scene;
    await report(store, "one");
    await report(store, "two");
    await age("one", 61_000);
    expect(await owners(store)).toEqual(["two"]);
    await report(store, "two");
    expect(await kept()).toEqual(["one", "two"]);
    await age("one", 600_000);
    await reportOften(store, "two");
    expect(await kept()).toEqual(["two"]);
  });
});

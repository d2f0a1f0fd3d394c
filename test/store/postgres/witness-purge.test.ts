import { expect, inject, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { openStore } from "../../../src/host/open-store.ts";
import { tenant } from "../../../testkit/conformance/frame.ts";
import { sceneOn, until } from "./scene.ts";

it("old witnesses are deleted beside a write, and a store without writes is left alone", async () => {
  const scene = await sceneOn(inject("postgres18"));
  onTestFinished(() => scene.close());
  let now = 0;
  const timers: number[] = [];
  const clock = {
    ...systemClock,
    mono: () => now,
    after: (ms: number, work: () => void) => {
      timers.push(ms);
      return systemClock.after(ms, work);
    },
  };
  const store = await openStore(scene.url, { clock });
  onTestFinished(() => store.close());
  await scene.admin.query("insert into tape.witness(id, at) values (1, tape.now_ms() - 700000), (2, tape.now_ms())");
  const left = async (): Promise<string[]> => {
    const { rows } = await scene.admin.query<{ id: string }>("select id from tape.witness where id < 3 order by id");
    return rows.map(({ id }) => id);
  };
  const write = () => store.intake.putValue(tenant, "v", 1, "unconditional");
  await write();
  expect(await left(), "not within the first minute").toEqual(["1", "2"]);
  now += 60_000;
  await write();
  await until(async () => (await left()).length === 1, "the old witness stays");
  expect(await left()).toEqual(["2"]);
  expect(
    timers.filter((ms) => ms >= 60_000),
    "no timer would wake it",
  ).toEqual([]);
});

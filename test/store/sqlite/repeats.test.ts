import { afterEach, beforeEach, expect, it } from "vitest";
import { ManualClock } from "../../../testkit/clock.ts";
import { heldRun, tenant } from "../../../testkit/conformance/frame.ts";
import { ended } from "../../../testkit/conformance/holder.ts";
import { type Place, placeForFile } from "./files.ts";

const day = 86_400_000;
let place: Place;
beforeEach(() => {
  place = placeForFile();
});
afterEach(() => place.close());

const keys = (): unknown[] =>
  place
    .raw()
    .prepare("select key from idempotency_keys order by key")
    .all()
    .map(({ key }) => key);

it("results of repeatable calls are deleted after a day, at the first call of a process and now and then", async () => {
  const clock = new ManualClock();
  const store = await place.open({ clock });
  const put = (key: string, by = store) =>
    by.once({ tenant, key, hash: "h" }).putValue(tenant, "v", key, "unconditional");
  await put("a");
  await clock.elapse(2_000);
  await put("b");
  await clock.elapse(day - 3_000);
  await put("c");
  await clock.elapse(2_000);
  expect((await put("a")).version, "still stored: no purge has run").toBe(1);
  expect(keys()).toEqual(["a", "b", "c"]);
  const another = await place.open({ clock });
  expect((await put("d", another)).version).toBe(4);
  expect(keys(), "a is older than a day, b is not yet").toEqual(["b", "c", "d"]);
  expect((await put("a")).version, "a new call").toBe(5);
  await clock.elapse(2 * day);
  // One call in this many purges.
  for (let k = 0; k < 128; k++) await put(`later-${String(k).padStart(3, "0")}`);
  expect(keys()).not.toContain("c");
  expect(keys()).toHaveLength(128);
});

it("purges at most a thousand and one at a time, so that the transaction stays short", async () => {
  const clock = new ManualClock();
  await (await place.open({ clock })).close();
  const raw = place.raw();
  const insert = raw.prepare(
    "insert into idempotency_keys(tenant, key, hash, response, at) values ('acme', ?, 'h', '1', ?)",
  );
  const start = Math.floor(clock.wall()) - 3 * day;
  for (let k = 0; k < 1_500; k++) insert.run(`old-${k}`, start + k);
  const left = async (): Promise<number> => {
    const store = await place.open({ clock });
    await store.once({ tenant, key: "k", hash: "h" }).prune(tenant, 1, 1);
    await store.close();
    return keys().filter((key) => String(key).startsWith("old-")).length;
  };
  expect([await left(), await left()]).toEqual([499, 0]);
});

it("the keys of signals and cancellations are deleted with their run", async () => {
  const store = await place.open();
  const run = await heldRun(store);
  await store.intake.signal(tenant, run.id, { name: "s", value: 1, key: "k" });
  await store.intake.cancel(tenant, run.id, { reason: "r", key: "k" });
  const noted = () => place.raw().prepare("select count(*) as n from note_keys").get();
  expect(noted()).toEqual({ n: 2 });
  await store.fenced.append(run.fence, { after: 1, records: [ended("COMPLETED", { outcome: 1, notesTaken: 2 })] });
  expect(await store.intake.prune(tenant, (await store.read.now()) + 60_000, 5)).toBe(1);
  expect(noted()).toEqual({ n: 0 });
});

it("the stored result of a write does not contain the value", async () => {
  const store = await place.open();
  await store.once({ tenant, key: "k", hash: "h" }).putValue(tenant, "v", "a secret", "unconditional");
  const [kept] = place.raw().prepare("select response from idempotency_keys").all();
  expect(kept?.response).toMatch(/version/);
  expect(kept?.response).not.toMatch(/secret/);
});

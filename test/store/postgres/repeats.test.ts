import { afterAll, beforeAll, beforeEach, expect, inject, it } from "vitest";
import { tenant } from "../../../testkit/conformance/frame.ts";
import { codeOf, type Scene, sceneOn, until } from "./scene.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await sceneOn(inject("postgres18"));
});
beforeEach(async () => {
  await scene.admin.query("delete from tape.idempotency_keys; delete from tape.vals; delete from tape.val_log");
});
afterAll(() => scene.close());

const put = (key: string, value: unknown, hash = "h") =>
  scene.store.once({ tenant, key, hash }).putValue(tenant, "v", value, "unconditional");
const claim = { tenant, key: "k", hash: "putValue h" };
const stored = { key: "v", version: 7, value: '"theirs"', at: 5 };

it("a second caller waits for the first and gets its result, or an error if its request differs", async () => {
  const hand = await scene.hand();
  await hand.sql("begin");
  await hand.run("idempotency.claim", claim);
  const waiting = [put("k", "ours"), codeOf(put("k", "ours", "another"))] as const;
  await until(async () => (await scene.waiting()).length === 2, "they do not wait");
  await hand.run("idempotency.store", { ...claim, response: JSON.stringify(stored) });
  await hand.sql("commit");
  expect(await waiting[0]).toEqual({ key: "v", version: 7, value: "theirs", deleted: false, at: 5 });
  expect(await waiting[1]).toBe("TAPE_KEY_REUSED");
  expect(await scene.store.read.value(tenant, "v"), "nothing was written").toBeUndefined();
});

it("the second caller performs the call if the first was rejected or vanished", async () => {
  const hand = await scene.hand();
  await hand.sql("begin");
  await hand.run("idempotency.claim", claim);
  const waiting = put("k", "ours");
  await scene.untilBlocked();
  await hand.sql("rollback");
  expect((await waiting).version).toBe(1);
  expect((await put("k", "again")).value).toBe("ours");
});

it("purges results older than a day, a thousand at a time, and no younger ones", async () => {
  await scene.admin.query(`insert into tape.idempotency_keys(tenant, key, hash, response, at)
    select 'acme', 'old-' || n, 'h', '1', tape.now_ms() - 90000000 + n from generate_series(1, 1500) n
    union all select 'acme', 'young', 'h', '1', tape.now_ms() - 80000000`);
  const left = async (): Promise<string[]> => {
    const store = await scene.open();
    await store.once({ tenant, key: "k", hash: "h" }).prune(tenant, 1, 1);
    const { rows } = await scene.admin.query<{ key: string }>("select key from tape.idempotency_keys order by key");
    return rows.map(({ key }) => key);
  };
  expect((await left()).length).toBe(501);
  expect(await left()).toEqual(["k", "young"]);
});

it("stores the result of a write without the value: a deletion erases it, and the repeat gets the same result", async () => {
  const first = await put("k", "a secret");
  const { rows } = await scene.admin.query<{ response: string }>("select response from tape.idempotency_keys");
  expect(rows.map(({ response }) => response.includes("secret"))).toEqual([false]);
  expect(await put("k", "a secret")).toEqual(first);
  await scene.store.intake.putValue(tenant, "v", "another", "unconditional");
  expect(await put("k", "a secret")).toEqual(first);
  await scene.store.intake.deleteValue(tenant, "v", 2);
  expect(await put("k", "a secret")).toEqual(first);
});

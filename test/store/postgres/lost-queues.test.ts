import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { Store } from "../../../src/store/contract/store.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { spec, tenant } from "../../../testkit/conformance/frame.ts";
import { ended } from "../../../testkit/conformance/holder.ts";
import { admit, assertProjected, countsOf, enqueue, newQueue } from "../../../testkit/conformance/queue-fixtures.ts";
import { type PostgresProxy, startProxy } from "../../postgres/proxy.ts";
import { type Scene, sceneOn } from "./scene.ts";

/** As lost-responses.test.ts, for the statements of queues: no slot is taken twice, and none is lost. */
let scene: Scene;
let proxy: PostgresProxy;
let store: Store;

beforeAll(async () => {
  scene = await sceneOn(inject("postgres18"));
  proxy = await startProxy(scene.url);
  store = await openPostgres({ url: proxy.url });
});
afterAll(async () => {
  await store.close();
  await proxy.close();
  await scene.close();
});

const statement = (name: string): RegExp => new RegExp(`tape\\.${name.replaceAll(".", "\\.")}\\0`);
const commit = /^commit\0$/;

describe.each(["after", "before"] as const)("cut %s the request reached the server", (when) => {
  const cut = (match: RegExp): Promise<void> =>
    when === "after" ? proxy.cutAfterRequest(match) : proxy.cutBeforeRequest(match);

  it("[INV-7] creates each run of a queue once", async () => {
    const queue = await newQueue(store);
    const broken = cut(statement("create_many.queued"));
    const specs = Array.from({ length: 20 }, () => spec({ queue }));
    const created = await store.intake.createRuns(tenant, specs);
    await broken;
    expect(created.every((one) => one.ok && one.fresh)).toBe(true);
    expect(await countsOf(scene.store, queue)).toEqual([0, 20]);
    await assertProjected(scene.store);
  });

  it.each([
    ["the statement", statement("admit.take")],
    ["the commit", commit],
  ])("[INV-7] admits no more runs than there are slots: %s", async (_what, match) => {
    const queue = await newQueue(store, { concurrency: 3 });
    await enqueue(store, queue, 5);
    const broken = cut(match);
    const found = await admit(store, queue);
    await broken;
    expect(found).toHaveLength(3);
    expect(await countsOf(scene.store, queue)).toEqual([3, 2]);
    for (const run of found) await run.write(ended("COMPLETED", { outcome: 1 }));
    expect(await countsOf(scene.store, queue)).toEqual([0, 2]);
    await assertProjected(scene.store);
  });

  it.each(["end_many.queued", "park_many.queued"])("[INV-7] returns each slot once: %s", async (name) => {
    const queue = await newQueue(store);
    await enqueue(store, queue, 10);
    const runs = await admit(store, queue);
    const broken = cut(statement(name));
    const returned = runs.map((run) =>
      name === "end_many.queued" ? run.write(ended("COMPLETED", { outcome: 1 })) : run.release(),
    );
    await Promise.all(returned);
    await broken;
    expect(await countsOf(scene.store, queue)).toEqual([0, 0]);
    await assertProjected(scene.store);
  });
});

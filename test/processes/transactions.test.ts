import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import type { Runner, Workflow } from "../../src/sdk/workflow.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { ownPostgres } from "../postgres/own.ts";
import { Child } from "./child-process.ts";
import { type DyingOptions, openShop, type Shop, shopRunner } from "./transaction-world.ts";

const postgresUrl = ownPostgres(18);

interface World {
  readonly url: string;
  readonly ttlMs: number;
  readonly shop: Shop;
}

/** `create`: where the schema is created, without the short bounds of the test. */
async function worldAt(test: TestContext, url: string, ttlMs: number, create = url): Promise<World> {
  await (await Tape.open({ store: create, runner: idle, work: false, report: false })).close();
  const shop = await openShop(url);
  test.onTestFinished(() => shop.close());
  await shop.run("create table orders(id text primary key)");
  return { url, ttlMs, shop };
}

const idle: Runner = shopRunner({} as Shop);

const onSqlite = async (test: TestContext): Promise<World> => {
  const folder = await mkdtemp(join(tmpdir(), "tape-transactions-"));
  test.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return worldAt(test, `sqlite:${join(folder, "tape.db")}`, 500);
};

const onPostgres = async (test: TestContext): Promise<World> => {
  const database = await freshDatabase(postgresUrl());
  test.onTestFinished(() => dropDatabase(database));
  return worldAt(test, `${database}?transaction_bound_ms=500&connections=4`, 1_000, database);
};

/** Runs a process until it has killed itself. */
async function dead(options: DyingOptions, test: TestContext): Promise<void> {
  const child = new Child("dying", [JSON.stringify(options)], test, "transaction-worker.ts");
  await test.expect(child.receive()).rejects.toThrow("the worker ended before it replied");
}

async function survivor({ url, ttlMs, shop }: World, test: TestContext, work = true): Promise<Tape> {
  const app = await Tape.open({ store: url, runner: shopRunner(shop), leaseTtl: ttlMs, work, log: "silent" });
  test.onTestFinished(() => app.close());
  return app;
}

describe.each([
  ["SQLite", onSqlite],
  ["PostgreSQL", onPostgres],
])("processes killed around a commit on %s", (_name, open) => {
  it("a run and a signal survive the death right after the commit, and no later ones", async (test) => {
    const { expect } = test;
    const world = await open(test);
    const observer = await survivor(world, test, false);
    const { workflows } = shopRunner(world.shop);
    await observer.start(workflows.get("approved") as unknown as Workflow<undefined, string>, undefined, {
      id: "waiting",
    });
    const { url, ttlMs } = world;
    await dead({ url, ttlMs, dies: "start" }, test);
    expect(await observer.runs.get("kept")).toMatchObject({ status: "RUNNABLE" });
    expect(await observer.runs.get("lost")).toBeUndefined();
    const notes = await observer.store.read.journal(observer.tenant, { run: "waiting" }, { inbox: true });
    expect(notes.map(({ data }) => (data as { value?: unknown }).value)).toEqual(["kept"]);
    const app = await survivor(world, test);
    expect(await (await app.run("kept")).result()).toBe("booked");
    expect(await (await app.run("waiting")).result()).toBe("received");
    expect(await world.shop.orders()).toEqual(["order of kept"]);
  });

  for (const dies of ["inside", "after"] as const) {
    it(`a step whose process dies ${dies} its transaction has its row once`, async (test) => {
      const { expect } = test;
      const world = await open(test);
      const { url, ttlMs, shop } = world;
      await dead({ url, ttlMs, dies }, test);
      const { store, tenant } = await survivor(world, test, false);
      const found = async (): Promise<[orders: string[], steps: number]> => {
        const records = await store.read.journal(tenant, { run: "step" });
        return [await shop.orders(), records.filter(({ kind }) => kind === "step.done").length];
      };
      expect(await found()).toEqual(dies === "after" ? [["step"], 1] : [[], 0]);
      const app = await survivor(world, test);
      expect(await (await app.run("step")).result()).toBe("booked");
      expect(await found()).toEqual([["step"], 1]);
    });
  }
});

import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import type { Store } from "../../../src/store/contract/store.ts";
import { heldRun, step, tenant } from "../../../testkit/conformance/frame.ts";
import { type Scene, sceneOn } from "./scene.ts";

const noisy = "noisy";

/** How much of a flood is finished: what matters is how much of it another tenant's call had to wait for. */
class Flood {
  done = 0;
  readonly #all: Promise<unknown>[];

  constructor(calls: readonly Promise<unknown>[]) {
    this.#all = calls.map((call) => call.then(() => this.done++));
  }

  /** How many of it were finished while this call was waiting. */
  async passed(call: Promise<unknown>): Promise<number> {
    const before = this.done;
    await call;
    return this.done - before;
  }

  async started(): Promise<void> {
    await Promise.race(this.#all);
  }

  async over(): Promise<void> {
    await Promise.all(this.#all);
  }
}

describe("tenants of one process take turns on PostgreSQL", () => {
  let scene: Scene;
  let store: Store;
  let round = 0;
  beforeAll(async () => {
    scene = await sceneOn(inject("postgres18"), "?connections=4");
    store = scene.store;
  });
  afterAll(() => scene.close());
  beforeEach(() => {
    round++;
  });

  const start = async (of: string, id: string, input: unknown = 1): Promise<void> => {
    const [verdict] = await store.intake.createRuns(of, [{ id: `${round} ${id}`, workflow: "w", input }]);
    if (!verdict!.ok) throw verdict!.error;
  };
  const floodOf = (count: number, call: (k: number) => Promise<unknown>) =>
    new Flood(Array.from({ length: count }, (_, k) => call(k)));

  it("a start waits for a batch of another tenant's starts, not for all of them", async () => {
    const flood = floodOf(4_000, (k) => start(noisy, `flood ${k}`));
    expect(await flood.passed(start(tenant, "one"))).toBeLessThan(2_500);
    await flood.over();
  });

  it("a small start waits for a few of another tenant's large ones, not for all that fit into a batch", async () => {
    const large = "x".repeat(256 * 1024);
    const flood = floodOf(60, (k) => start(noisy, `large ${k}`, large));
    expect(await flood.passed(start(tenant, "small"))).toBeLessThan(40);
    await flood.over();
  });

  it("an append waits for a batch of another tenant's starts, not for all of them", async () => {
    const { fence } = await heldRun(store);
    const flood = floodOf(4_000, (k) => start(noisy, `flood ${k}`));
    await flood.started();
    expect(await flood.passed(store.fenced.append(fence, { after: 1, records: [step(1, "x")] }))).toBeLessThan(2_000);
    await flood.over();
  });

  it("starts that are retried one by one keep no other tenant's start from the next batch", async () => {
    const ids = Array.from({ length: 1_200 }, (_, k) => `known ${k}`);
    await Promise.all(ids.map((id) => start(noisy, id)));
    const flood = floodOf(ids.length, (k) => start(noisy, ids[k]!));
    await flood.started();
    expect(await flood.passed(start(tenant, "one"))).toBeLessThan(150);
    await flood.over();
  });

  it("a read waits for a few reads of another tenant, not for all of them", async () => {
    const flood = floodOf(1_000, (k) => store.read.run(noisy, `${k}`));
    expect(await flood.passed(store.read.run(tenant, "one"))).toBeLessThan(200);
    await flood.over();
  });

  it("a transaction likewise", async () => {
    const flood = floodOf(300, (k) => store.intake.putValue(noisy, `${round} ${k}`, k, "unconditional"));
    expect(await flood.passed(store.intake.putValue(tenant, "one", 1, "unconditional"))).toBeLessThan(50);
    await flood.over();
  });

  it("statements of one tenant that wait for locks leave a connection to the others", async () => {
    const held = await heldRun(store);
    const rival = await scene.hand();
    await rival.sql("begin");
    await rival.sql(`select from tape.leases where journal = ${held.journal} for update`);
    const cancel = () => store.intake.cancel(tenant, held.id, { by: "test", reason: "test" });
    const blocked = Promise.all(Array.from({ length: 12 }, cancel));
    await scene.untilBlocked();
    expect(await store.read.run(noisy, "none")).toBeUndefined();
    expect(await scene.waiting()).not.toEqual([]);
    await rival.sql("commit");
    await blocked;
  });
});

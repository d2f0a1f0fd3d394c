import { expect, it } from "vitest";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { settled } from "../../testkit/clock.ts";
import { stage, tenant, ttlMs } from "./stage.ts";

// Found by `npm run chaos -- reactors`: the drive of a closing run hung when it lost its lease. It occupied a slot
// forever, and every suspect of its process waited for it.
it("a drive that loses its lease while its run closes ends although its last write gets no response", async () => {
  const { process, store, run, clock } = await stage();
  const book = effect("book", () => "booked", { compensate: () => "cancelled" });
  const trip = workflow("trip", async (tape) => {
    await tape.effect(book.with(null));
    throw new Error("no seat");
  });
  const runner = createRunner({ workflows: [trip], effects: [book] });
  const first = process(runner);
  const id = await first.start(trip);
  await first.until(async () => (await run(id)).status === "COMPENSATING");
  await first.until(async () => {
    const [owed] = await store.read.effects(tenant, { run: id, role: "compensation" });
    return owed?.status === "COMPENSATED" || (await run(id)).endedAt !== null;
  });
  first.crash();

  // The successor finds the run, and then its store does not respond any more.
  const noResponse = (): Promise<never> => new Promise(() => {});
  const silentStore: Store = {
    ...store,
    fenced: { ...store.fenced, append: noResponse },
    claim: { ...store.claim, renew: noResponse },
  };
  const successor = process(runner, { store: silentStore });
  await clock.elapse(ttlMs + 1);
  expect((await successor.worker.poll(10)).found).toBe(1);
  await settled(20);
  expect(successor.worker.driving).toBe(1);
  await clock.elapse(ttlMs + 1);
  await settled(20);
  expect(successor.worker.driving).toBe(0);
});

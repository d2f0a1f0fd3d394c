import { expect, it } from "vitest";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { settled } from "../../testkit/clock.ts";
import { stage, tenant, ttlMs } from "./stage.ts";

// Found by `npm run chaos -- reactors`: the drive of a run that was closing hung when its lease was lost, took up room for
// ever, and kept every suspect of its process waiting for it.
it("a drive that loses its lease while its run closes is over, although its last write is never answered", async () => {
  const { process, store, run, clock } = await stage();
  const book = effect("book", () => "booked", { compensate: () => "undone" });
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

  // The heir finds the run again, and then its store does not answer any more.
  const silent = (): Promise<never> => new Promise(() => {});
  const unsubscribe: Store = {
    ...store,
    fenced: { ...store.fenced, append: silent },
    claim: { ...store.claim, renew: silent },
  };
  const heir = process(runner, { store: unsubscribe });
  await clock.elapse(ttlMs + 1);
  expect((await heir.worker.poll(10)).found).toBe(1);
  await settled(20);
  expect(heir.worker.driving).toBe(1);
  await clock.elapse(ttlMs + 1);
  await settled(20);
  expect(heir.worker.driving).toBe(0);
});

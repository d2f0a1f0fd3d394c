import { describe, expect, it } from "vitest";
import { ReactorLoop } from "../../src/reactor/loop.ts";
import { outbox } from "../../src/reactor/outbox.ts";
import { reconciler } from "../../src/reactor/reconciler.ts";
import { NotSent, type Observation, outcome } from "../../src/sdk/outcomes.ts";
import { calm, type Replica, type Stage, setStage, story, waiting } from "./stage.ts";

const after = { pendingAfterMs: 600_000 };

/** A process that sees `see()` upstream and counts how often. */
function observing(stage: Stage, see: () => Observation): Replica & { readonly observed: string[] } {
  const observed: string[] = [];
  const wire = stage.wire({
    observe: (_args, fx) => {
      observed.push(fx.key);
      return see();
    },
  });
  return { ...stage.replica({ effects: [wire] }), observed };
}

describe("a long-PENDING effect", () => {
  it("is observed once before it is sent; absent, it goes back to the outbox", async () => {
    const stage = await setStage();
    const deps = observing(stage, () => outcome.absent());
    const run = await waiting(stage.store);
    const reconcile = reconciler(deps, after);
    await stage.clock.elapse(599_000);
    await reconcile.runOnce(10);
    expect(deps.observed).toEqual([]); // it is not late yet
    await stage.clock.elapse(200_000);
    await reconcile.runOnce(10);
    expect(deps.observed).toEqual([`${run.id}:0`]);
    expect([(await run.effect(0)).status, stage.world]).toEqual(["PENDING", []]);
    await stage.clock.elapse(900_000);
    await reconcile.runOnce(10);
    expect(deps.observed).toHaveLength(1); // once is enough
    await outbox(deps, after).runOnce(10);
    expect([(await run.effect(0)).status, stage.world.length, deps.observed.length]).toEqual(["CONFIRMED", 1, 1]);
  });

  it("that an operator did by hand meanwhile is confirmed and never sent", async () => {
    const stage = await setStage();
    const deps = observing(stage, () => outcome.confirmed("paid by hand"));
    const run = await waiting(stage.store);
    await stage.clock.elapse(700_000);
    await reconciler(deps, after).runOnce(10);
    const row = await run.effect(0);
    expect([row.status, row.reason]).toEqual(["CONFIRMED", "observed"]);
    expect(await story(stage.store, run)).toEqual(
      expect.arrayContaining(["UNKNOWN long_pending", "CONFIRMED observed"]),
    );
    await outbox(deps, after).runOnce(10);
    expect(stage.world).toEqual([]);
  });

  it("is handed to the reconciler by an outbox that claims it late", async () => {
    const stage = await setStage();
    const deps = observing(stage, () => outcome.confirmed("paid by hand"));
    const run = await waiting(stage.store);
    await stage.clock.elapse(700_000);
    await outbox(deps, after).runOnce(10);
    expect([(await run.effect(0)).status, stage.world]).toEqual(["PENDING", []]);
    await reconciler(deps).runOnce(10); // also by one without the setting
    expect((await run.effect(0)).status).toBe("CONFIRMED");
  });

  it("is not observed without the setting, nor if it is sent in time, nor without `observe`", async () => {
    const stage = await setStage();
    const deps = observing(stage, () => outcome.absent());
    const first = await waiting(stage.store);
    await stage.clock.elapse(700_000);
    await reconciler(deps).runOnce(10);
    await outbox(deps).runOnce(10);
    const second = await waiting(stage.store);
    await stage.clock.elapse(60_000);
    await outbox(deps, after).runOnce(10);
    const blind = stage.replica({ effects: [stage.wire()] });
    const third = await waiting(stage.store);
    await stage.clock.elapse(700_000);
    await reconciler(blind, after).runOnce(10);
    await outbox(blind, after).runOnce(10);
    for (const run of [first, second, third]) expect((await run.effect(0)).status).toBe("CONFIRMED");
    expect([stage.world.length, deps.observed]).toEqual([3, []]);
  });

  it("is not observed during the backoff of a retry", async () => {
    const stage = await setStage();
    const observed: string[] = [];
    const retry = { attempts: 2, base: "30m", cap: "30m" } as const;
    const observe = (_args: unknown, fx: { key: string }) => {
      observed.push(fx.key);
      return outcome.absent();
    };
    const wire = stage.wire({ retry, observe }, () => {
      throw new NotSent();
    });
    const deps = stage.replica({ effects: [wire] });
    const run = await waiting(stage.store);
    await outbox(deps, after).runOnce(10);
    await stage.clock.elapse(800_000); // pending for longer, but due in 15 to 30 minutes only
    await reconciler(deps, after).runOnce(10);
    expect([(await run.effect(0)).status, observed]).toEqual(["PENDING", []]);
    await stage.clock.elapse(1_700_000);
    await reconciler(deps, after).runOnce(10);
    expect(observed).toHaveLength(1);
  });

  it("is found by the loop, while nothing else wakes the reconciler", async () => {
    const stage = await setStage();
    const { store, clock } = stage;
    const deps = observing(stage, () => outcome.confirmed("by hand"));
    const run = await waiting(store);
    const loop = new ReactorLoop({ reactors: [reconciler(deps, after)], store, clock, log: deps.log });
    await loop.start();
    await clock.elapse(590_000);
    expect(deps.observed).toEqual([]);
    await clock.elapse(80_000);
    await calm();
    expect((await run.effect(0)).status).toBe("CONFIRMED");
    await loop.stop();
  });

  it("whose observation fails is sent all the same", async () => {
    const stage = await setStage();
    const deps = observing(stage, () => {
      throw new Error("the bank is away");
    });
    const run = await waiting(stage.store);
    await stage.clock.elapse(700_000);
    await reconciler(deps, after).runOnce(10);
    await outbox(deps, after).runOnce(10);
    expect([(await run.effect(0)).status, deps.observed.length]).toEqual(["CONFIRMED", 1]);
  });
});

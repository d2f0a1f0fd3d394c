import { describe, expect, it } from "vitest";
import { reconciler } from "../../src/reactor/reconciler.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { begin, dispatched, type Holder, intent, settled } from "../../testkit/conformance/holder.ts";
import { mortal, type Replica, type Stage, setStage, story, tenant, ttl } from "./stage.ts";

const none = { found: 0, done: 0, failed: 0, lagMs: 0 };

/** A run that waits for an effect in doubt. */
async function inDoubt(store: Store): Promise<Holder> {
  const run = await begin(store);
  await run.write(intent(0, { semantics: "non_idempotent" }), dispatched(0, { sendWithinMs: 1_000 }));
  await run.write(settled(0, "UNKNOWN", { reason: "ack_lost" }));
  await run.release();
  return run;
}

/** A process whose observe confirms the effect. */
function observer(stage: Stage, store: Store = stage.store): { deps: Replica; observations: string[] } {
  const observations: string[] = [];
  const observe = (_args: unknown, fx: { readonly runId: string }) => {
    observations.push(fx.runId);
    return outcome.confirmed("seen");
  };
  return { deps: stage.replica({ effects: [stage.wire({ observe, businessKey: () => "k" })], store }), observations };
}

describe("reconciler", () => {
  it("loses nothing in a crash before the observation: another process observes after the expiry", async () => {
    const stage = await setStage();
    const run = await inDoubt(stage.store);
    const mine = mortal(stage.store);
    mine.dieAt("claim.find", "after");
    const dead = observer(stage, mine.store);
    void reconciler(dead.deps).runOnce(10);
    await mine.died;
    const other = observer(stage);
    expect(await reconciler(other.deps).runOnce(10)).toEqual(none);
    await stage.clock.elapse(ttl + 1);
    expect(await reconciler(other.deps).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect([dead.observations, other.observations]).toEqual([[], [run.id]]);
    expect(await story(stage.store, run)).toEqual(["confirmed", "CONFIRMED observed"]);
  });

  it("writes one verdict after a crash between observation and record", async () => {
    const stage = await setStage();
    const run = await inDoubt(stage.store);
    const mine = mortal(stage.store);
    mine.dieAt("fenced.append", "before");
    const dead = observer(stage, mine.store);
    void reconciler(dead.deps).runOnce(10);
    await mine.died;
    await stage.clock.elapse(ttl + 1);
    const other = observer(stage);
    expect(await reconciler(other.deps).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect([dead.observations.length, other.observations.length]).toEqual([1, 1]);
    expect(await story(stage.store, run)).toEqual(["confirmed", "CONFIRMED observed"]);
  });

  it("retries a poison item without blocking others", async () => {
    const stage = await setStage();
    const { store, clock } = stage;
    const [bad, good] = [await inDoubt(store), await inDoubt(store)];
    const { item } = await bad.effect(0);
    const journal: typeof store.read.journal = (of, target, page) =>
      "journal" in target && target.journal === item
        ? Promise.reject(new Error("rotten"))
        : store.read.journal(of, target, page);
    const { deps } = observer(stage, { ...store, read: { ...store.read, journal } });
    expect(await reconciler(deps).runOnce(10)).toMatchObject({ found: 2, done: 1, failed: 1 });
    expect([(await good.effect(0)).status, (await bad.effect(0)).status]).toEqual(["CONFIRMED", "UNKNOWN"]);
    expect(await store.read.lease(tenant, { journal: item! })).toMatchObject({
      state: "FREE",
      nextReactor: "reconciler",
    });
    await clock.elapse(60_000);
    expect(await reconciler(observer(stage).deps).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect((await bad.effect(0)).status).toBe("CONFIRMED");
  });

  it("leaves another tenant's effects in doubt alone", async () => {
    const stage = await setStage();
    const run = await inDoubt(stage.store);
    const { deps, observations } = observer(stage);
    expect(await reconciler({ ...deps, tenant: "globex" }).runOnce(10)).toEqual(none);
    expect([observations, (await run.effect(0)).status]).toEqual([[], "UNKNOWN"]);
  });
});

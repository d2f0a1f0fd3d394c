import { describe, expect, it } from "vitest";
import { resolve } from "../../src/operator/resolve.ts";
import { outbox } from "../../src/reactor/outbox.ts";
import { reconciler } from "../../src/reactor/reconciler.ts";
import type { EffectContext, EffectOptions } from "../../src/sdk/effect.ts";
import { AckLost, NotSent, outcome } from "../../src/sdk/outcomes.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { decided, dispatched, type Holder, hold, holdItem, settled } from "../../testkit/conformance/holder.ts";
import { calm, mortal, setStage, signal, story, tenant, ttl, waiting } from "./stage.ts";

const none = { found: 0, done: 0, failed: 0, lagMs: 0 };

const options = (more: Partial<EffectOptions<unknown, unknown>> = {}): Partial<EffectOptions<unknown, unknown>> => ({
  semantics: "idempotent",
  retry: { attempts: 5, base: "1h", cap: "1h" },
  compensate: () => {},
  ...more,
});

const observed = (seen = outcome.confirmed<unknown>("found")) => options({ observe: () => seen });

/** The run's driver decides the outcome while the effect waits for its backoff, or is being sent. */
async function end(store: Store, run: Holder): Promise<void> {
  const driver = await hold(store, run.id);
  await driver.write(decided("cancelled"));
  await driver.release((await run.view()).notes);
}

describe("an outbox effect whose run ends", () => {
  it("is observed at once if a response was lost, whatever its backoff", async () => {
    const { store, replica, wire, world } = await setStage();
    for (const errors of [[new AckLost()], [new AckLost(), new NotSent()], [new NotSent(), new AckLost()]]) {
      const run = await waiting(store, "idempotent");
      const { item } = await run.effect(0);
      const [first, second] = errors;
      const deps = replica({
        effects: [wire(observed(), ({ attempt }: EffectContext) => Promise.reject(attempt === 1 ? first : second))],
      });
      await outbox(deps).runOnce(10);
      if (second !== undefined) {
        const sender = await holdItem(store, run.id, 0);
        await sender.release(0, { nextReactor: "outbox" });
        await outbox(deps).runOnce(10);
      }
      const sent = world.length;
      await end(store, run);
      expect(await run.effect(0)).toMatchObject({ status: "PENDING", uncertain: true });
      expect(await outbox(deps).runOnce(10)).toEqual(none);
      expect(await reconciler(deps).runOnce(10)).toMatchObject({ found: 1, done: 1 });
      expect((await story(store, run)).slice(-3)).toEqual(["UNKNOWN run_ending", "confirmed", "CONFIRMED observed"]);
      expect([await run.effect(0, 1), world.length]).toMatchObject([{ status: "ARMED" }, sent]);
      expect(await store.read.lease(tenant, { journal: item! })).toMatchObject({ state: "FREE", nextReactor: null });
    }
  });

  it("is withdrawn if no attempt of it was sent", async () => {
    const { store, replica, wire, world } = await setStage();
    const run = await waiting(store, "idempotent");
    const deps = replica({ effects: [wire(observed(), () => Promise.reject(new NotSent()))] });
    await outbox(deps).runOnce(10);
    await end(store, run);
    expect(await run.effect(0)).toMatchObject({ status: "WITHDRAWN", uncertain: false });
    expect([await outbox(deps).runOnce(10), await reconciler(deps).runOnce(10)]).toEqual([none, none]);
    expect(world).toHaveLength(1);
  });

  it("is observed, not sent again, if it loses its response after the decision", async () => {
    const { store, replica, wire, world, clock } = await setStage();
    const run = await waiting(store, "idempotent");
    const lost = signal<never>();
    const deps = replica({
      effects: [
        wire({ ...observed(), retry: { attempts: 5, base: "1s" } }, async () => {
          await lost.come;
          throw new AckLost();
        }),
      ],
    });
    const sending = outbox(deps).runOnce(10);
    await calm();
    await end(store, run);
    expect(await run.effect(0)).toMatchObject({ status: "DISPATCHED" });
    lost.give(undefined as never);
    await sending;
    await clock.elapse(2_000);
    await outbox(deps).runOnce(10);
    await reconciler(deps).runOnce(10);
    expect(await story(store, run)).toEqual([
      ...["attempt 1", "PENDING ack_lost", "UNKNOWN run_ending", "confirmed", "CONFIRMED observed"],
    ]);
    expect(world).toHaveLength(1);
  });

  it("is observed, not sent again, if its sender crashed", async () => {
    const { store, replica, wire, world, clock } = await setStage();
    const run = await waiting(store, "idempotent");
    const mine = mortal(store);
    void outbox(replica({ effects: [wire(observed(), () => mine.die())], store: mine.store })).runOnce(10);
    await mine.died;
    await end(store, run);
    await clock.elapse(ttl + 1);
    const other = replica({ effects: [wire(observed())] });
    await reconciler(other).runOnce(10);
    await outbox(other).runOnce(10);
    await reconciler(other).runOnce(10);
    expect(await story(store, run)).toEqual([
      ...["attempt 1", "PENDING lease_lost", "UNKNOWN run_ending", "confirmed", "CONFIRMED observed"],
    ]);
    expect(world).toHaveLength(1);
  });

  it("is sent again under its key if it has no observe, with a new attempt and the old count", async () => {
    const { store, replica, wire, world, clock } = await setStage();
    const run = await waiting(store, "idempotent");
    let lost = 0;
    const fails = () => (lost++ < 2 ? Promise.reject(new AckLost()) : "sent");
    const deps = replica({ effects: [wire({ ...options(), retry: { attempts: 3, base: "1s" } }, fails)] });
    await outbox(deps).runOnce(10);
    await end(store, run);
    await reconciler(deps).runOnce(10);
    for (let k = 0; k < 2; k++) {
      await clock.elapse(60_000);
      await outbox(deps).runOnce(10);
    }
    expect(await story(store, run)).toEqual([
      ...["attempt 1", "PENDING ack_lost", "UNKNOWN run_ending", "PENDING unobservable"],
      ...["attempt 2", "PENDING ack_lost", "attempt 3", "CONFIRMED returned"],
    ]);
    expect(new Set(world.map(({ key }) => key))).toEqual(new Set([`${run.id}:0`]));
    expect(await run.effect(0, 1)).toMatchObject({ status: "ARMED" });
  });

  it("is absent only once no paused sender can still send", async () => {
    const { store, replica, wire, world, clock } = await setStage();
    const run = await waiting(store, "idempotent");
    const deps = replica({
      effects: [
        wire({ ...observed(outcome.absent()), timeout: "20s", settleDelay: "5s" }, () => Promise.reject(new AckLost())),
      ],
    });
    await outbox(deps).runOnce(10);
    await end(store, run);
    await reconciler(deps).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "UNKNOWN", reason: "run_ending" });
    await clock.elapse(20_000 + 10_000 + 5_000 + 1);
    await reconciler(deps).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "FAILED", reason: "ABSENT" });
    expect(world).toHaveLength(1);
  });

  it("is sent if an operator has it retried while the run is ending", async () => {
    const { store, replica, wire, world } = await setStage();
    const run = await waiting(store, "idempotent");
    const deps = replica({
      effects: [
        wire(observed(outcome.inconclusive("?")), ({ attempt }) => attempt > 1 || Promise.reject(new AckLost())),
      ],
    });
    await outbox(deps).runOnce(10);
    await end(store, run);
    await reconciler(deps).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "UNKNOWN" });
    await resolve(deps, { run: run.id, pos: 0, resolution: { as: "retry" }, by: "ada", reason: "it was lost" });
    await outbox(deps).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "CONFIRMED", reason: "returned" });
    expect(world).toHaveLength(2);
  });

  it("is stuck, not withdrawn, if it is unobservable, non_idempotent and was retried by an operator", async () => {
    const { store, replica, wire, world } = await setStage();
    const run = await waiting(store, "non_idempotent");
    const sender = await holdItem(store, run.id, 0);
    const { journal } = run;
    await sender.write(dispatched(0, { run: journal }), settled(0, "UNKNOWN", { run: journal, reason: "ack_lost" }));
    await sender.write(settled(0, "PENDING", { run: journal, reason: "operator" }));
    await sender.release(0, { nextReactor: "outbox" });
    await end(store, run);
    await reconciler(replica({ effects: [wire()] })).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "STUCK", reason: "unobservable" });
    expect(world).toHaveLength(0);
  });
});

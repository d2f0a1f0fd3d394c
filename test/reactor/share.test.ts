import { describe, expect, it } from "vitest";
import { functionConnector } from "../../src/connector/function.ts";
import type { ReactorDeps } from "../../src/engine/item/deps.ts";
import { compensation } from "../../src/reactor/compensation.ts";
import { ReactorLoop } from "../../src/reactor/loop.ts";
import { outbox } from "../../src/reactor/outbox.ts";
import type { Reactor } from "../../src/reactor/reactor.ts";
import { reconciler } from "../../src/reactor/reconciler.ts";
import type { ReactorTuning } from "../../src/reactor/runner.ts";
import { effect } from "../../src/sdk/effect.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { record } from "../../testkit/conformance/frame.ts";
import { armed, begin, confirmed, decided } from "../../testkit/conformance/holder.ts";
import { onBothStores } from "../kit/both-stores.ts";
import { calm, type Parts, type Stage, setStage, tenant, waiting } from "./stage.ts";

const both = onBothStores();
const never = (): Promise<never> => new Promise(() => {});

/** One loop with these places, on its own stage; it stops without waiting for hanging calls. */
async function onLoop(
  make: (deps: ReactorDeps) => Reactor,
  effects: Parts["effects"] & {},
  tuning: ReactorTuning,
  work: (stage: Stage, loop: ReactorLoop) => Promise<void>,
): Promise<void> {
  const stage = await setStage();
  const deps = stage.replica({ effects });
  const { store, clock } = stage;
  const loop = new ReactorLoop({ reactors: [make(deps)], store, clock, log: deps.log, ...tuning, drainMs: 0 });
  await loop.start();
  try {
    await work(stage, loop);
  } finally {
    const stopped = loop.stop();
    await clock.elapse(1);
    await stopped;
  }
}

describe("a connector that hangs", () => {
  both("120 of its calls do not block another connector", async (open) => {
    const slow = functionConnector("slow", { dispatch: never, observe: () => outcome.inconclusive("it hangs") });
    const quick = functionConnector("quick", { dispatch: () => "sent" });
    const charge = effect<number, unknown>("charge", { connector: "slow", semantics: "idempotent", timeout: "4s" });
    const mail = effect<number, unknown>("mail", { connector: "quick", semantics: "idempotent" });
    const charges = workflow("charges", (_tape, n: number) => charge(n));
    const mails = workflow("mails", (_tape, n: number) => mail(n));
    const t = await open(
      createRunner({ workflows: [charges, mails], effects: [charge, mail], connectors: [slow, quick] }),
    );
    for (let k = 0; k < 120; k++) await t.start(charges, k, { id: `c${k}` });
    await t.elapse(100);
    for (let k = 0; k < 5; k++) {
      const run = await t.start(mails, k, { id: `m${k}` });
      await t.elapse(500);
      expect(await t.time.during(run.status())).toBe("COMPLETED");
    }
    // Items without a place wait without a lease, for any process with capacity.
    const page = await t.time.during(t.store.read.effects("default", { status: ["PENDING"] }));
    const leases = page.map(({ item }) => t.store.read.lease("default", { journal: item! }));
    const states = (await t.time.during(Promise.all(leases))).map((lease) => lease?.state);
    expect(states.length).toBeGreaterThan(0);
    expect(new Set(states)).toEqual(new Set(["FREE"]));
  });
});

describe("places", () => {
  const hung = effect<unknown, unknown>("hung", never, { semantics: "idempotent", timeout: "4s" });

  it("an effect without a connector has its own places, and a free place is used at once", async () => {
    let answers: (() => void)[] = [];
    const slow = effect<unknown, unknown>("slow", () => new Promise<void>((resolve) => void answers.push(resolve)), {
      semantics: "idempotent",
      timeout: "10m",
    });
    let sent = 0;
    const wire = effect<unknown, unknown>("wire", () => ++sent, { semantics: "idempotent" });
    await onLoop(outbox, [slow, wire], { batch: 10, concurrency: 3, perConnector: 2 }, async ({ store }, loop) => {
      for (let k = 0; k < 5; k++) await waiting(store, "idempotent", { name: "slow" });
      await calm();
      expect([answers.length, loop.stats.outbox!.busy]).toEqual([2, 2]);
      for (let k = 0; k < 3; k++) await waiting(store, "idempotent");
      await calm();
      expect(sent).toBe(3);
      const [one] = answers;
      answers = [];
      one!();
      await calm();
      expect([answers.length, loop.stats.outbox!.busy]).toEqual([1, 2]);
    });
  });

  it("a hanging compensation does not block those of other effects", async () => {
    let compensated = 0;
    const compensatedBy = (name: string, compensate: () => unknown) =>
      effect<unknown, unknown>(name, () => "done", { semantics: "idempotent", compensate, timeout: "10m" });
    const effects = [compensatedBy("hung", never), compensatedBy("wire", () => ++compensated)];
    await onLoop(compensation, effects, { batch: 4, concurrency: 4 }, async ({ store }, loop) => {
      const owed = async (name: string): Promise<void> => {
        const run = await begin(store);
        await run.write(...confirmed(0, { name }), armed(0, { name, args: { args: 0, result: 0 } }));
        await run.write(decided("failed"), record("run.compensating", {}));
        await run.release();
      };
      for (let k = 0; k < 6; k++) await owed("hung");
      await calm();
      expect(loop.stats.compensation).toMatchObject({ busy: 2 });
      await owed("wire");
      await calm();
      expect(compensated).toBe(1);
    });
  });

  it("a hanging observation does not block those of other effects", async () => {
    let seen = 0;
    const observedBy = (name: string, observe: () => unknown, body: () => unknown = never) =>
      effect<unknown, unknown>(name, body, { observe: observe as () => never, businessKey: () => "b" });
    const effects = [observedBy("hung", never), observedBy("wire", () => outcome.confirmed(++seen))];
    await onLoop(reconciler, effects, { batch: 4, concurrency: 4 }, async (stage, loop) => {
      const { store } = stage;
      const inDoubt = async (name: string): Promise<void> => {
        await waiting(store, "non_idempotent", { name });
        const lost = stage.replica({ effects: [observedBy(name, never, () => Promise.reject(new Error("?")))] });
        await outbox(lost).runOnce(1);
      };
      for (let k = 0; k < 6; k++) await inDoubt("hung");
      await calm();
      expect(loop.stats.reconciler).toMatchObject({ busy: 2 });
      await inDoubt("wire");
      await calm();
      expect(seen).toBe(1);
    });
  });

  it("claims no item without a place", async () => {
    await onLoop(outbox, [hung], { batch: 2 }, async ({ store }) => {
      const runs = [];
      for (let k = 0; k < 4; k++) runs.push(await waiting(store, "idempotent", { name: "hung" }));
      await calm();
      const states = [];
      for (const run of runs) {
        const { item } = await run.effect(0);
        states.push((await store.read.lease(tenant, { journal: item! }))?.state);
      }
      expect(states.sort()).toEqual(["FREE", "FREE", "HELD", "HELD"]);
    });
  });
});

import { describe, expect, it } from "vitest";
import { compensation } from "../../src/reactor/compensation.ts";
import { reconciler } from "../../src/reactor/reconciler.ts";
import { type Effect, type EffectContext, effect, type Semantics } from "../../src/sdk/effect.ts";
import { AckLost, DefiniteFailure, NotSent, outcome } from "../../src/sdk/outcomes.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { record } from "../../testkit/conformance/frame.ts";
import { armed, begin, confirmed, decided, ended, type Holder, hold } from "../../testkit/conformance/holder.ts";
import { calm, mortal, setStage, signal, story, tenant, ttl } from "./stage.ts";

const none = { found: 0, done: 0, failed: 0, lagMs: 0 };
const compensating = record("run.compensating", {});

/** A run that owes the undoing of acts at these positions. */
async function owing(store: Store, positions: readonly number[], semantics: Semantics = "idempotent"): Promise<Holder> {
  const run = await begin(store);
  for (const pos of positions) {
    const args = { args: pos, result: `receipt ${pos}` };
    await run.write(
      ...confirmed(pos, { name: "wire" }),
      armed(pos, { name: "wire", semantics, args, key: `undo-${pos}` }),
    );
  }
  await run.write(decided("failed"), compensating);
  await run.release();
  return run;
}

type Undo = (pos: number, fx: EffectContext) => unknown;

/** What was undone, in order; `then` says how it went. */
function refund(semantics: Semantics, then: Undo = () => {}, observe?: () => ReturnType<typeof outcome.absent>) {
  const undone: string[] = [];
  const run = (args: unknown, result: unknown, fx: EffectContext): unknown => {
    undone.push(`${args} ${result} ${fx.key}`);
    return then(args as number, fx);
  };
  const compensate = { run, semantics, ...(observe === undefined ? {} : { observe }) };
  const options = { compensate, retry: { attempts: 2 }, timeout: "10m" } as const; // longer than a lease
  const wire: Effect<unknown, unknown> = effect("wire", () => "sent", options);
  return { undone, effects: [wire] };
}

describe("compensation", () => {
  it("undoes strictly newest first, one after the other, and tells the run of each", async () => {
    const { store, replica } = await setStage();
    const run = await owing(store, [0, 3, 12]);
    const { undone, effects } = refund("idempotent");
    const reactor = compensation(replica({ effects }));
    for (const expected of [1, 2, 3]) {
      expect(await reactor.runOnce(10)).toMatchObject({ found: 1, done: 1 });
      expect((await run.view()).notes).toBe(expected);
    }
    expect(await reactor.runOnce(10)).toEqual(none);
    expect(undone).toEqual(["12 receipt 12 undo-12", "3 receipt 3 undo-3", "0 receipt 0 undo-0"]);
    const driver = await hold(store, run.id);
    await driver.write(ended("COMPENSATED", { notesTaken: 3 }));
  });

  it("a healthy run's obligations are left alone", async () => {
    const { store, replica, clock } = await setStage();
    const run = await begin(store);
    await run.write(...confirmed(0, { name: "wire" }), armed(0, { name: "wire" }));
    await run.release();
    const { undone, effects } = refund("idempotent");
    const reactor = compensation(replica({ effects }));
    await clock.elapse(3_600_000);
    expect(await reactor.runOnce(10)).toEqual(none);
    const driver = await hold(store, run.id);
    await driver.write(ended("COMPLETED", { outcome: 1 }));
    expect(await reactor.runOnce(10)).toEqual(none);
    expect([undone, (await run.effect(0, 1)).status]).toEqual([[], "DISCHARGED"]);
  });

  it("one that is refused for good is stuck and stops the chain", async () => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0, 1]);
    const { undone, effects } = refund("idempotent", () => {
      throw new DefiniteFailure("the account is closed");
    });
    const deps = replica({ effects });
    expect(await compensation(deps).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(await run.effect(1, 1)).toMatchObject({ status: "STUCK", reason: "definite" });
    await clock.elapse(3_600_000);
    expect(await compensation(deps).runOnce(10)).toEqual(none);
    expect(undone).toHaveLength(1);
    expect(await run.view()).toMatchObject({ notes: 1 });
    expect((await run.effect(0, 1)).status).toBe("PENDING");
  });

  it("an idempotent inverse is tried again by policy, and is UNKNOWN when the tries are used up", async () => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0]);
    const { undone, effects } = refund("idempotent", () => {
      throw new AckLost();
    });
    const deps = replica({ effects });
    await compensation(deps).runOnce(10);
    expect(await compensation(deps).runOnce(10)).toEqual(none);
    await clock.elapse(1_000);
    await compensation(deps).runOnce(10);
    expect(await story(store, run, 0, 1)).toEqual(["attempt 1", "PENDING ack_lost", "attempt 2", "UNKNOWN ack_lost"]);
    expect(undone).toHaveLength(2);
  });

  it("an inverse that was not sent, again and again, is stuck, not compensated", async () => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0], "non_idempotent");
    const { effects } = refund("non_idempotent", () => {
      throw new NotSent();
    });
    const reactor = compensation(replica({ effects }));
    await reactor.runOnce(10);
    await clock.elapse(1_000);
    await reactor.runOnce(10);
    expect(await run.effect(0, 1)).toMatchObject({ status: "STUCK", reason: "not_sent" });
  });

  it("a vanished holder may have undone it: a refusal of the next attempt alone does not deny that", async () => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0]);
    const mine = mortal(store);
    const { effects } = refund("idempotent", () => mine.die());
    void compensation(replica({ effects, store: mine.store })).runOnce(10);
    await mine.died;
    await clock.elapse(ttl + 1);
    const busy = refund("idempotent", () => {
      throw new DefiniteFailure("too many requests", { scope: "attempt" });
    });
    await compensation(replica(busy)).runOnce(10);
    expect(await story(store, run, 0, 1)).toEqual(["attempt 1", "PENDING lease_lost", "attempt 2", "PENDING ack_lost"]);
  });

  it("a vanished holder: an idempotent inverse is called again under its key", async () => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0]);
    const mine = mortal(store);
    const first = refund("idempotent", () => mine.die());
    void compensation(replica({ effects: first.effects, store: mine.store })).runOnce(10);
    await mine.died;
    const second = refund("idempotent");
    const other = replica({ effects: second.effects });
    expect(await compensation(other).runOnce(10)).toEqual(none);
    await clock.elapse(ttl + 1);
    expect(await compensation(other).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(second.undone).toEqual(first.undone);
    expect(await story(store, run, 0, 1)).toEqual([
      "attempt 1",
      "PENDING lease_lost",
      "attempt 2",
      "COMPENSATED returned",
    ]);
  });

  it.each([
    ["confirmed", ["confirmed", "COMPENSATED observed"]],
    ["absent", ["absent", "PENDING not_sent"]],
    ["unobservable", ["STUCK unobservable"]],
  ] as const)("a vanished holder: a non_idempotent inverse is UNKNOWN, then %s", async (seen, expected) => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0, 1], "non_idempotent");
    const mine = mortal(store);
    const first = refund("non_idempotent", () => mine.die());
    void compensation(replica({ effects: first.effects, store: mine.store })).runOnce(10);
    await mine.died;
    await clock.elapse(ttl + 1);
    const look = seen === "confirmed" ? outcome.confirmed<never>(0 as never) : outcome.absent({ final: true });
    const second = refund("non_idempotent", () => {}, seen === "unobservable" ? undefined : () => look as never);
    const other = replica({ effects: second.effects });
    await compensation(other).runOnce(10);
    expect((await run.effect(1, 1)).status).toBe("UNKNOWN");
    expect(await compensation(other).runOnce(10)).toEqual(none);
    await reconciler(other).runOnce(10);
    expect(await story(store, run, 1, 1)).toEqual(["attempt 1", "UNKNOWN lease_lost", ...expected]);
    await compensation(other).runOnce(10);
    const next = { confirmed: "0 receipt 0 undo-0", absent: "1 receipt 1 undo-1", unobservable: undefined }[seen];
    expect(second.undone[0]).toBe(next);
  });

  it("a crash between claim and act loses nothing", async () => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0], "non_idempotent");
    const mine = mortal(store);
    mine.dieAt("fenced.append", "before");
    const { undone, effects } = refund("non_idempotent");
    void compensation(replica({ effects, store: mine.store })).runOnce(10);
    await mine.died;
    await clock.elapse(ttl + 1);
    await compensation(replica({ effects })).runOnce(10);
    expect([undone.length, (await run.effect(0, 1)).status]).toEqual([1, "COMPENSATED"]);
  });

  it("slow work past its lease: the late one writes no verdict, its answer is evidence, and the order stays", async () => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0, 1], "non_idempotent");
    const slow = mortal(store);
    const answer = signal();
    const late = refund("non_idempotent", () => answer.come);
    const deps = replica({ effects: late.effects, store: { ...store, claim: slow.store.claim } });
    const round = compensation(deps).runOnce(10);
    await calm();
    slow.die(); // its heartbeats do not arrive; everything else does
    await clock.elapse(ttl + 1);
    const second = refund("non_idempotent");
    const other = replica({ effects: second.effects });
    expect(await compensation(other).runOnce(10)).toMatchObject({ found: 1 });
    expect((await run.effect(1, 1)).status).toBe("UNKNOWN");
    expect(await compensation(other).runOnce(10)).toEqual(none); // the older one waits for it
    answer.give();
    expect(await round).toMatchObject({ found: 1, done: 0, failed: 1 });
    expect(deps.logged).toContain("effect.evidence_recorded");
    await reconciler(other).runOnce(10);
    expect(await story(store, run, 1, 1)).toEqual(["attempt 1", "UNKNOWN lease_lost", "COMPENSATED evidence"]);
    await compensation(other).runOnce(10);
    expect([late.undone, second.undone]).toEqual([["1 receipt 1 undo-1"], ["0 receipt 0 undo-0"]]);
  });

  it("one poison item keeps no other run from being compensated, and is looked at again", async () => {
    const { store, replica, clock } = await setStage();
    const [bad, good] = [await owing(store, [0]), await owing(store, [0])];
    const { item } = await bad.effect(0, 1);
    const journal: typeof store.read.journal = (of, target, page) =>
      "journal" in target && target.journal === item
        ? Promise.reject(new Error("rotten"))
        : store.read.journal(of, target, page);
    const { effects } = refund("idempotent");
    const deps = replica({ effects, store: { ...store, read: { ...store.read, journal } } });
    expect(await compensation(deps).runOnce(10)).toMatchObject({ found: 2, done: 1, failed: 1 });
    expect([(await good.effect(0, 1)).status, (await bad.effect(0, 1)).status]).toEqual(["COMPENSATED", "PENDING"]);
    expect(await compensation(deps).runOnce(10)).toEqual(none);
    await clock.elapse(60_000);
    expect(await compensation(replica({ effects })).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect((await bad.effect(0, 1)).status).toBe("COMPENSATED");
  });

  it("another tenant's obligations are left alone", async () => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0]);
    const { undone, effects } = refund("idempotent");
    await clock.elapse(ttl);
    expect(await compensation({ ...replica({ effects }), tenant: "globex" }).runOnce(10)).toEqual(none);
    expect([undone, (await run.effect(0, 1)).status]).toEqual([[], "PENDING"]);
  });

  it("two replicas on one chain: each inverse is called once, in order", async () => {
    const { store, replica } = await setStage();
    await owing(store, [0, 1, 2], "non_idempotent");
    const { undone, effects } = refund("non_idempotent");
    const reactors = [compensation(replica({ effects })), compensation(replica({ effects }))];
    for (let k = 0; k < 5; k++) await Promise.all(reactors.map((reactor) => reactor.runOnce(10)));
    expect(undone).toEqual(["2 receipt 2 undo-2", "1 receipt 1 undo-1", "0 receipt 0 undo-0"]);
  });

  it("surplus acts are undone in any run, outside the chain", async () => {
    const { store, replica } = await setStage();
    const run = await begin(store);
    const args = { args: 7, result: "twice" };
    await run.write(...confirmed(0, { name: "wire" }), armed(0, { name: "wire" }));
    await run.write(
      record("obligation.surplus", { pos: 0, sub: 2, name: "wire", semantics: "idempotent", key: "s", args }),
    );
    const { undone, effects } = refund("idempotent");
    await compensation(replica({ effects })).runOnce(10);
    expect(undone).toEqual(["7 twice s"]);
    expect([(await run.effect(0, 1)).status, (await run.effect(0, 2)).status]).toEqual(["ARMED", "COMPENSATED"]);
  });

  it("an inverse that this process does not know waits for one that does; others are not blocked", async () => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0]);
    const stranger = await begin(store);
    await stranger.write(
      ...confirmed(0, { name: "mail" }),
      armed(0, { name: "mail" }),
      decided("failed"),
      compensating,
    );
    const { undone, effects } = refund("idempotent");
    const deps = replica({ effects });
    expect(await compensation(deps).runOnce(10)).toMatchObject({ found: 2, done: 2, unserved: 1 });
    expect([undone.length, (await run.effect(0, 1)).status]).toEqual([1, "COMPENSATED"]);
    expect(deps.logged).toContain("reactor.no_handler");
    const { item } = await stranger.effect(0, 1);
    expect(await store.read.lease(tenant, { journal: item! })).toMatchObject({
      nextReactor: "compensation",
      state: "FREE",
    });
    await clock.elapse(1_000);
    expect(await compensation(deps).runOnce(10)).toMatchObject({ found: 1 });
  });
});

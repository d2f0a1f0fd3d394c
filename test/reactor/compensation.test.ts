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

/** A run with obligations at these positions. */
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

type Compensation = (pos: number, fx: EffectContext) => unknown;

/** Records compensations in order; `then` is their result. */
function refund(
  semantics: Semantics,
  then: Compensation = () => {},
  observe?: () => ReturnType<typeof outcome.absent>,
) {
  const compensated: string[] = [];
  const run = (args: unknown, result: unknown, fx: EffectContext): unknown => {
    compensated.push(`${args} ${result} ${fx.key}`);
    return then(args as number, fx);
  };
  const compensate = { run, semantics, ...(observe === undefined ? {} : { observe }) };
  const options = { compensate, retry: { attempts: 2 }, timeout: "10m" } as const; // longer than a lease
  const wire: Effect<unknown, unknown> = effect("wire", () => "sent", options);
  return { compensated, effects: [wire] };
}

describe("compensation", () => {
  it("compensates strictly newest first, one at a time, and notifies the run of each", async () => {
    const { store, replica } = await setStage();
    const run = await owing(store, [0, 3, 12]);
    const { compensated, effects } = refund("idempotent");
    const reactor = compensation(replica({ effects }));
    for (const expected of [1, 2, 3]) {
      expect(await reactor.runOnce(10)).toMatchObject({ found: 1, done: 1 });
      expect((await run.view()).notes).toBe(expected);
    }
    expect(await reactor.runOnce(10)).toEqual(none);
    expect(compensated).toEqual(["12 receipt 12 undo-12", "3 receipt 3 undo-3", "0 receipt 0 undo-0"]);
    const driver = await hold(store, run.id);
    await driver.write(ended("COMPENSATED", { notesTaken: 3 }));
  });

  it("leaves the obligations of a healthy run alone", async () => {
    const { store, replica, clock } = await setStage();
    const run = await begin(store);
    await run.write(...confirmed(0, { name: "wire" }), armed(0, { name: "wire" }));
    await run.release();
    const { compensated, effects } = refund("idempotent");
    const reactor = compensation(replica({ effects }));
    await clock.elapse(3_600_000);
    expect(await reactor.runOnce(10)).toEqual(none);
    const driver = await hold(store, run.id);
    await driver.write(ended("COMPLETED", { outcome: 1 }));
    expect(await reactor.runOnce(10)).toEqual(none);
    expect([compensated, (await run.effect(0, 1)).status]).toEqual([[], "DISCHARGED"]);
  });

  it("makes an obligation STUCK after a definite failure, and stops the chain", async () => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0, 1]);
    const { compensated, effects } = refund("idempotent", () => {
      throw new DefiniteFailure("the account is closed");
    });
    const deps = replica({ effects });
    expect(await compensation(deps).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(await run.effect(1, 1)).toMatchObject({ status: "STUCK", reason: "definite" });
    await clock.elapse(3_600_000);
    expect(await compensation(deps).runOnce(10)).toEqual(none);
    expect(compensated).toHaveLength(1);
    expect(await run.view()).toMatchObject({ notes: 1 });
    expect((await run.effect(0, 1)).status).toBe("PENDING");
  });

  it("retries an idempotent compensation by policy, then settles it UNKNOWN", async () => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0]);
    const { compensated, effects } = refund("idempotent", () => {
      throw new AckLost();
    });
    const deps = replica({ effects });
    await compensation(deps).runOnce(10);
    expect(await compensation(deps).runOnce(10)).toEqual(none);
    await clock.elapse(1_000);
    await compensation(deps).runOnce(10);
    expect(await story(store, run, 0, 1)).toEqual(["attempt 1", "PENDING ack_lost", "attempt 2", "UNKNOWN ack_lost"]);
    expect(compensated).toHaveLength(2);
  });

  it("makes a compensation that is never sent STUCK, not COMPENSATED", async () => {
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

  it("does not take a later refusal as proof that a crashed attempt failed", async () => {
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

  it("repeats an idempotent compensation of a crashed holder under its key", async () => {
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
    expect(second.compensated).toEqual(first.compensated);
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
  ] as const)("settles a crashed non_idempotent compensation UNKNOWN, then %s", async (seen, expected) => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0, 1], "non_idempotent");
    const mine = mortal(store);
    const first = refund("non_idempotent", () => mine.die());
    void compensation(replica({ effects: first.effects, store: mine.store })).runOnce(10);
    await mine.died;
    await clock.elapse(ttl + 1);
    const observation = seen === "confirmed" ? outcome.confirmed<never>(0 as never) : outcome.absent({ final: true });
    const second = refund("non_idempotent", () => {}, seen === "unobservable" ? undefined : () => observation as never);
    const other = replica({ effects: second.effects });
    await compensation(other).runOnce(10);
    expect((await run.effect(1, 1)).status).toBe("UNKNOWN");
    expect(await compensation(other).runOnce(10)).toEqual(none);
    await reconciler(other).runOnce(10);
    expect(await story(store, run, 1, 1)).toEqual(["attempt 1", "UNKNOWN lease_lost", ...expected]);
    await compensation(other).runOnce(10);
    const next = { confirmed: "0 receipt 0 undo-0", absent: "1 receipt 1 undo-1", unobservable: undefined }[seen];
    expect(second.compensated[0]).toBe(next);
  });

  it("loses nothing in a crash between claim and call", async () => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0], "non_idempotent");
    const mine = mortal(store);
    mine.dieAt("fenced.append", "before");
    const { compensated, effects } = refund("non_idempotent");
    void compensation(replica({ effects, store: mine.store })).runOnce(10);
    await mine.died;
    await clock.elapse(ttl + 1);
    await compensation(replica({ effects })).runOnce(10);
    expect([compensated.length, (await run.effect(0, 1)).status]).toEqual([1, "COMPENSATED"]);
  });

  it("keeps a late result as evidence after the lease expired, and the order", async () => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0, 1], "non_idempotent");
    const slow = mortal(store);
    const answer = signal();
    const late = refund("non_idempotent", () => answer.come);
    const deps = replica({ effects: late.effects, store: { ...store, claim: slow.store.claim } });
    const round = compensation(deps).runOnce(10);
    await calm();
    slow.die(); // its heartbeats are lost; its other calls arrive
    await clock.elapse(ttl + 1);
    const second = refund("non_idempotent");
    const other = replica({ effects: second.effects });
    expect(await compensation(other).runOnce(10)).toMatchObject({ found: 1 });
    expect((await run.effect(1, 1)).status).toBe("UNKNOWN");
    expect(await compensation(other).runOnce(10)).toEqual(none); // the older obligation waits for it
    answer.give();
    expect(await round).toMatchObject({ found: 1, done: 0, failed: 1 });
    expect(deps.logged).toContain("effect.evidence_recorded");
    await reconciler(other).runOnce(10);
    expect(await story(store, run, 1, 1)).toEqual(["attempt 1", "UNKNOWN lease_lost", "COMPENSATED evidence"]);
    await compensation(other).runOnce(10);
    expect([late.compensated, second.compensated]).toEqual([["1 receipt 1 undo-1"], ["0 receipt 0 undo-0"]]);
  });

  it("retries a poison item without blocking other runs", async () => {
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

  it("leaves another tenant's obligations alone", async () => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0]);
    const { compensated, effects } = refund("idempotent");
    await clock.elapse(ttl);
    expect(await compensation({ ...replica({ effects }), tenant: "globex" }).runOnce(10)).toEqual(none);
    expect([compensated, (await run.effect(0, 1)).status]).toEqual([[], "PENDING"]);
  });

  it("calls each compensation once, in order, with two replicas", async () => {
    const { store, replica } = await setStage();
    await owing(store, [0, 1, 2], "non_idempotent");
    const { compensated, effects } = refund("non_idempotent");
    const reactors = [compensation(replica({ effects })), compensation(replica({ effects }))];
    for (let k = 0; k < 5; k++) await Promise.all(reactors.map((reactor) => reactor.runOnce(10)));
    expect(compensated).toEqual(["2 receipt 2 undo-2", "1 receipt 1 undo-1", "0 receipt 0 undo-0"]);
  });

  it("compensates surplus effects in any run, outside the chain", async () => {
    const { store, replica } = await setStage();
    const run = await begin(store);
    const args = { args: 7, result: "twice" };
    await run.write(...confirmed(0, { name: "wire" }), armed(0, { name: "wire" }));
    await run.write(
      record("obligation.surplus", { pos: 0, sub: 2, name: "wire", semantics: "idempotent", key: "s", args }),
    );
    const { compensated, effects } = refund("idempotent");
    await compensation(replica({ effects })).runOnce(10);
    expect(compensated).toEqual(["7 twice s"]);
    expect([(await run.effect(0, 1)).status, (await run.effect(0, 2)).status]).toEqual(["ARMED", "COMPENSATED"]);
  });

  it("leaves an unknown compensation to another process without blocking others", async () => {
    const { store, replica, clock } = await setStage();
    const run = await owing(store, [0]);
    const stranger = await begin(store);
    await stranger.write(
      ...confirmed(0, { name: "mail" }),
      armed(0, { name: "mail" }),
      decided("failed"),
      compensating,
    );
    const { compensated, effects } = refund("idempotent");
    const deps = replica({ effects });
    expect(await compensation(deps).runOnce(10)).toMatchObject({ found: 2, done: 2, unserved: 1 });
    expect([compensated.length, (await run.effect(0, 1)).status]).toEqual([1, "COMPENSATED"]);
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

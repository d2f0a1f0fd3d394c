import { describe, expect, it } from "vitest";
import { decode } from "../../src/base/codec.ts";
import { outbox } from "../../src/reactor/outbox.ts";
import { reconciler } from "../../src/reactor/reconciler.ts";
import { AckLost, DefiniteFailure, NotSent, outcome } from "../../src/sdk/outcomes.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { decided, Holder, hold } from "../../testkit/conformance/holder.ts";
import { calm, granting, mortal, setStage, signal, story, tenant, ttl, waiting } from "./stage.ts";

const none = { found: 0, done: 0, failed: 0, lagMs: 0 };

describe("outbox", () => {
  it("loses an item whose write hangs while its lease is renewed, but not one within its time-out", async () => {
    const stage = await setStage();
    const { clock, store } = stage;
    let hangs = true;
    const append: Store["fenced"]["append"] = (fence, entry) =>
      hangs && entry.records.some(({ kind }) => kind === "effect.settled")
        ? new Promise(() => {})
        : store.fenced.append(fence, entry);
    const own = { ...store, fenced: { ...store.fenced, append } };
    const wire = stage.wire({ semantics: "idempotent", timeout: "5m" }, () => clock.sleep(240_000));
    const run = await waiting(store, "idempotent");
    const wedged = stage.replica({ effects: [wire], store: own });
    void outbox(wedged).runOnce(10);
    const pass = async (ms: number) => {
      for (let spent = 0; spent < ms; spent += 5_000) {
        await clock.elapse(5_000);
        await calm();
      }
    };
    const { item } = await run.effect(0);
    await pass(240_000);
    expect((await store.read.terms(tenant, { journal: item! })).at(-1)?.endReason).toBeUndefined();
    await pass(45_000);
    hangs = false;
    const other = stage.replica({ effects: [wire] });
    await reconciler(other).runOnce(10);
    const terms = await store.read.terms(tenant, { journal: item! });
    expect(terms.map(({ endReason }) => endReason).slice(0, 1)).toEqual(["stalled"]);
    expect(await run.effect(0)).toMatchObject({ status: "PENDING", reason: "lease_lost" });
  });

  it("dispatches a due effect, arms its obligation, wakes the run and releases the item", async () => {
    const { store, replica, wire, world, clock } = await setStage();
    const run = await waiting(store);
    await clock.elapse(40);
    const { item, key } = await run.effect(0);
    const reactor = outbox(replica({ effects: [wire({ compensate: () => {} })] }));
    expect(await reactor.runOnce(10)).toEqual({ found: 1, done: 1, failed: 0, lagMs: 40 });
    expect(await run.effect(0)).toMatchObject({ status: "CONFIRMED", attempt: 1 });
    expect(await run.effect(0, 1)).toMatchObject({ status: "ARMED", semantics: "non_idempotent" });
    expect(world).toEqual([{ what: "wire", key, token: run.term.fence.token + 1n, args: { amount: 0 } }]);
    expect(await run.view()).toMatchObject({ status: "RUNNABLE", notes: 1 });
    expect(await store.read.lease(tenant, { journal: item! })).toMatchObject({ state: "FREE", nextReactor: null });
    expect(await reactor.runOnce(10)).toEqual(none);
  });

  it("settles a definite failure as final, also by isDefinite", async () => {
    const { store, replica, wire, world } = await setStage();
    for (const error of [new DefiniteFailure("no"), new TypeError("declined")]) {
      const run = await waiting(store, "idempotent");
      const definite = (thrown: unknown) => thrown instanceof TypeError;
      const effects = [
        wire({ isDefinite: definite, semantics: "idempotent" }, () => {
          throw error;
        }),
      ];
      expect(await outbox(replica({ effects })).runOnce(10)).toMatchObject({ done: 1 });
      expect(await run.effect(0)).toMatchObject({ status: "FAILED", reason: "definite" });
    }
    expect(world).toHaveLength(2);
  });

  it("retries NotSent after a backoff for all semantics, then fails", async () => {
    const { store, replica, wire, world, clock } = await setStage();
    const run = await waiting(store);
    const retry = { attempts: 3, base: "1s", factor: 2 } as const;
    const effects = [
      wire({ retry }, () => {
        throw new NotSent();
      }),
    ];
    const reactor = outbox(replica({ effects }));
    expect(await reactor.runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(await run.effect(0)).toMatchObject({ status: "PENDING", reason: "not_sent" });
    await clock.elapse(499);
    expect(await reactor.runOnce(10)).toEqual(none);
    await clock.elapse(501);
    expect(await reactor.runOnce(10)).toMatchObject({ found: 1 });
    await clock.elapse(999);
    expect(await reactor.runOnce(10)).toEqual(none);
    await clock.elapse(1_001);
    await reactor.runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "FAILED", reason: "not_sent", attempt: 3 });
    expect(world).toHaveLength(3);
    expect(await story(store, run)).toEqual([
      "attempt 1",
      "PENDING not_sent",
      "attempt 2",
      "PENDING not_sent",
      "attempt 3",
      "FAILED not_sent",
    ]);
  });

  it.each([
    ["non_idempotent", ["attempt 1", "UNKNOWN ack_lost"]],
    ["idempotent", ["attempt 1", "PENDING ack_lost", "attempt 2", "UNKNOWN ack_lost"]],
    ["read", ["attempt 1", "PENDING ack_lost", "attempt 2", "FAILED exhausted"]],
  ] as const)("settles a lost response of a %s effect by its semantics", async (semantics, expected) => {
    const { store, replica, wire, clock } = await setStage();
    const run = await waiting(store, semantics);
    const options = { semantics, retry: { attempts: 2 } };
    const reactor = outbox(
      replica({
        effects: [
          wire(options, () => {
            throw new AckLost();
          }),
        ],
      }),
    );
    await reactor.runOnce(10);
    await clock.elapse(1_000);
    await reactor.runOnce(10);
    expect(await story(store, run)).toEqual(expected);
  });

  it("keeps an effect in doubt if only the last attempt was not sent", async () => {
    const { store, replica, wire, clock } = await setStage();
    const run = await waiting(store, "idempotent");
    let tries = 0;
    const effects = [
      wire({ semantics: "idempotent", retry: { attempts: 2 } }, () => {
        throw ++tries === 1 ? new AckLost() : new NotSent();
      }),
    ];
    const reactor = outbox(replica({ effects }));
    await reactor.runOnce(10);
    await clock.elapse(1_000);
    await reactor.runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "UNKNOWN" });
  });

  it("settles an effect that timed out by the evidence of its late result", async () => {
    const { store, replica, wire, clock } = await setStage();
    const run = await waiting(store);
    const answer = signal<string>();
    let aborted: AbortSignal | undefined;
    const effects = [
      wire({ timeout: "5s" }, (fx) => {
        aborted = fx.abortSignal;
        return answer.come;
      }),
    ];
    const deps = replica({ effects });
    const round = outbox(deps).runOnce(10);
    await clock.elapse(5_000);
    expect(await round).toMatchObject({ done: 1 });
    expect(aborted?.aborted).toBe(true);
    expect(await run.effect(0)).toMatchObject({ status: "UNKNOWN", reason: "ack_lost" });
    answer.give("receipt");
    await calm();
    expect(deps.logged).toContain("effect.evidence_recorded");
    await reconciler(deps).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "CONFIRMED", reason: "evidence" });
  });

  it("sends an item once with two replicas", async () => {
    const { store, replica, wire, world } = await setStage();
    await waiting(store);
    const effects = [wire()];
    const counts = await Promise.all([1, 2, 3, 4].map(() => outbox(replica({ effects })).runOnce(10)));
    expect(counts.reduce((sum, { found }) => sum + found, 0)).toBe(1);
    expect(world).toHaveLength(1);
  });

  it("loses nothing in a crash between claim and dispatch record", async () => {
    const { store, replica, wire, world, clock } = await setStage();
    const run = await waiting(store);
    const effects = [wire()];
    const mine = mortal(store);
    mine.dieAt("fenced.append", "before");
    void outbox(replica({ effects, store: mine.store })).runOnce(10);
    await mine.died;
    const other = replica({ effects });
    expect(await reconciler(other).runOnce(10)).toEqual(none);
    await clock.elapse(ttl + 1);
    expect(await reconciler(other).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(await outbox(other).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(await story(store, run)).toEqual(["attempt 1", "CONFIRMED returned"]);
    expect(world).toHaveLength(1);
  });

  it.each(["between dispatch record and call", "between call and record"])(
    "a crash %s is not sent again: UNKNOWN",
    async (when) => {
      const { store, replica, wire, world, clock } = await setStage();
      const run = await waiting(store);
      const mine = mortal(store);
      if (when === "between dispatch record and call") mine.dieAt("fenced.append", "after");
      const dying = wire({}, () => mine.die());
      void outbox(replica({ effects: [dying], store: mine.store })).runOnce(10);
      await mine.died;
      await clock.elapse(ttl + 1);
      const called = when === "between call and record";
      expect(world).toHaveLength(called ? 1 : 0);
      const observe = () => (called ? outcome.confirmed("found") : outcome.inconclusive("cannot tell"));
      const other = replica({ effects: [wire({ businessKey: () => "k", observe })] });
      expect(await outbox(other).runOnce(10)).toEqual(none);
      expect(await reconciler(other).runOnce(10)).toMatchObject({ done: 1 });
      expect(await story(store, run)).toEqual(
        called
          ? ["attempt 1", "UNKNOWN lease_lost", "confirmed", "CONFIRMED observed"]
          : ["attempt 1", "UNKNOWN lease_lost", "inconclusive"],
      );
      await clock.elapse(ttl * 3);
      expect(await outbox(other).runOnce(10)).toEqual(none);
      expect(world).toHaveLength(called ? 1 : 0);
    },
  );

  it("repeats an idempotent effect of a dead sender under its key, without counting a failure", async () => {
    const { store, replica, wire, world, clock } = await setStage();
    const run = await waiting(store, "idempotent");
    const mine = mortal(store);
    const options = { semantics: "idempotent", retry: { attempts: 1 } } as const;
    void outbox(replica({ effects: [wire(options, () => mine.die())], store: mine.store })).runOnce(10);
    await mine.died;
    await clock.elapse(ttl + 1);
    const other = replica({ effects: [wire(options)] });
    await reconciler(other).runOnce(10);
    await outbox(other).runOnce(10);
    expect(await story(store, run)).toEqual(["attempt 1", "PENDING lease_lost", "attempt 2", "CONFIRMED returned"]);
    expect(world.map(({ key }) => key)).toEqual([`${run.id}:0`, `${run.id}:0`]);
    expect(world[1]!.token).toBeGreaterThan(world[0]!.token);
  });

  it("fences a sender whose lease expired, and uses its result as evidence", async () => {
    const { store, replica, wire, world, clock } = await setStage();
    const run = await waiting(store);
    const slow = mortal(store);
    const answer = signal<string>();
    const deps = replica({
      effects: [wire({ timeout: "10m" }, () => answer.come)],
      store: { ...store, claim: slow.store.claim },
    });
    const round = outbox(deps).runOnce(10);
    await calm();
    slow.die(); // its heartbeats are lost; its other calls arrive
    await clock.elapse(ttl + 1);
    const other = replica({ effects: [wire({ businessKey: () => "k", observe: () => outcome.inconclusive("?") })] });
    await reconciler(other).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "UNKNOWN", reason: "lease_lost" });
    answer.give("receipt");
    expect(await round).toMatchObject({ found: 1, done: 0, failed: 1 });
    expect(deps.logged).toContain("effect.evidence_recorded");
    await clock.elapse(1_000);
    await reconciler(other).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "CONFIRMED", reason: "evidence" });
    expect(world).toHaveLength(1);
  });

  it("keeps slow work while the lease is renewed", async () => {
    const { store, replica, wire, world, clock } = await setStage();
    const run = await waiting(store);
    const answer = signal<string>();
    const round = outbox(replica({ effects: [wire({ timeout: "10m" }, () => answer.come)] })).runOnce(10);
    await clock.elapse(ttl * 5);
    expect(await reconciler(replica()).runOnce(10)).toEqual(none);
    answer.give("receipt");
    expect(await round).toMatchObject({ done: 1 });
    expect(await run.effect(0)).toMatchObject({ status: "CONFIRMED" });
    expect(world).toHaveLength(1);
  });

  it("keeps the result when the store fails, and releases the item before the TTL", async () => {
    const { store, replica, wire, world, clock } = await setStage();
    const run = await waiting(store);
    let broken = false;
    const append: typeof store.fenced.append = (fence, entry) => {
      const settles = entry.records.some(({ kind }) => kind === "effect.settled");
      if (!settles || broken) return store.fenced.append(fence, entry);
      broken = true;
      return Promise.reject(new Error("the disk is full"));
    };
    const deps = replica({ effects: [wire()], store: { ...store, fenced: { ...store.fenced, append } } });
    expect(await outbox(deps).runOnce(10)).toMatchObject({ failed: 1 });
    expect(await run.effect(0)).toMatchObject({ status: "DISPATCHED" });
    await clock.elapse(1_000);
    expect(await reconciler(deps).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(await story(store, run)).toEqual(["attempt 1", "UNKNOWN lease_lost", "CONFIRMED evidence"]);
    expect(world).toHaveLength(1);
  });

  it("confirms an effect with an unstorable result, arms its obligation and records why", async () => {
    const { store, replica, wire, world } = await setStage();
    const run = await waiting(store);
    const deps = replica({ effects: [wire({ compensate: () => {} }, () => () => {})] });
    expect(await outbox(deps).runOnce(10)).toMatchObject({ done: 1 });
    const { outcome: stored, ...row } = await run.effect(0);
    expect(row).toMatchObject({ status: "CONFIRMED", reason: "returned" });
    expect(decode(stored!)).toMatchObject({ error: { code: "TAPE_NOT_ENCODABLE" } });
    expect(await run.effect(0, 1)).toMatchObject({ status: "ARMED" });
    expect(world).toHaveLength(1);
  });

  it("retries a poison item with growing delays without blocking others", async () => {
    const { store, replica, wire, world, clock } = await setStage();
    const poison = await waiting(store);
    const { item } = await poison.effect(0);
    const others = [await waiting(store), await waiting(store)];
    const journal: typeof store.read.journal = (of, target, page) =>
      "journal" in target && target.journal === item
        ? Promise.reject(new Error("rotten"))
        : store.read.journal(of, target, page);
    const deps = replica({ effects: [wire()], store: { ...store, read: { ...store.read, journal } } });
    expect(await outbox(deps).runOnce(10)).toMatchObject({ found: 3, done: 2, failed: 1 });
    for (const run of others) expect(await run.effect(0)).toMatchObject({ status: "CONFIRMED" });
    expect(await store.read.lease(tenant, { journal: item! })).toMatchObject({ state: "FREE", nextReactor: "outbox" });
    expect(await outbox(deps).runOnce(10)).toEqual(none);
    await clock.elapse(60_000);
    expect(await outbox(replica({ effects: [wire()] })).runOnce(10)).toMatchObject({ done: 1 });
    expect(world).toHaveLength(3);
  });

  it("leaves an unknown effect to another process, visibly", async () => {
    const { store, replica, wire, world, clock } = await setStage();
    const run = await waiting(store);
    const { item } = await run.effect(0);
    const ignorant = replica();
    for (const backoff of [1_000, 2_000, 4_000]) {
      expect(await outbox(ignorant).runOnce(10)).toMatchObject({ found: 1, done: 1, unserved: 1 });
      expect(await outbox(ignorant).runOnce(10)).toEqual(none);
      await clock.elapse(backoff);
    }
    expect(ignorant.logged).toContain("reactor.no_handler");
    const ended = (await store.read.journal(tenant, { journal: item! })).findLast(({ kind }) => kind === "term.ended");
    expect(ended?.data).toMatchObject({
      nextReactor: "outbox",
      waitingFor: ["a process that has a body for effect wire"],
    });
    expect(await run.effect(0)).toMatchObject({ status: "PENDING", attempt: 0 });
    await outbox(replica({ effects: [wire()] })).runOnce(10);
    expect(world).toHaveLength(1);
  });

  it("uses evidence of an idempotent effect instead of sending again", async () => {
    const { store, replica, wire, world, clock } = await setStage();
    const run = await waiting(store, "idempotent");
    const granted = granting(store);
    const mine = mortal(granted.store);
    const options = { semantics: "idempotent" } as const;
    void outbox(replica({ effects: [wire(options, () => mine.die())], store: mine.store })).runOnce(10);
    await mine.died;
    await clock.elapse(ttl + 1);
    const other = replica({ effects: [wire(options)] });
    await reconciler(other).runOnce(10);
    const sender = new Holder(store, granted.terms.at(-1)!, run.id);
    await store.intake.leaveEvidence(tenant, sender.attempt(0), { happened: true, value: "receipt" });
    await outbox(other).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "CONFIRMED", reason: "evidence" });
    expect(world).toHaveLength(1);
  });

  it("does not send a withdrawn effect, even if it was claimed before", async () => {
    const { store, replica, wire, world } = await setStage();
    const run = await waiting(store);
    const driver = await hold(store, run.id);
    const deps = replica({ effects: [wire()] });
    const journal: typeof store.read.journal = async (of, target, page) => {
      if (page?.inbox !== true && "journal" in target && driver.head === driver.term.head)
        await driver.write(decided("cancelled"));
      return store.read.journal(of, target, page);
    };
    await outbox({ ...deps, store: { ...store, read: { ...store.read, journal } } }).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "WITHDRAWN" });
    expect(world).toHaveLength(0);
    expect(await reconciler(deps).runOnce(10)).toEqual(none);
  });

  it("leaves another tenant's items alone", async () => {
    const { store, replica, wire, world } = await setStage();
    await waiting(store);
    expect(await outbox({ ...replica({ effects: [wire()] }), tenant: "globex" }).runOnce(10)).toEqual(none);
    expect(world).toHaveLength(0);
  });
});

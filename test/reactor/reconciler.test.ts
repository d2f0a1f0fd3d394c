import { describe, expect, it, onTestFinished } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import { decode } from "../../src/base/codec.ts";
import { TapeError } from "../../src/model/errors.ts";
import { compensation } from "../../src/reactor/compensation.ts";
import { outbox } from "../../src/reactor/outbox.ts";
import { reconciler } from "../../src/reactor/reconciler.ts";
import type { EffectContext, EffectOptions } from "../../src/sdk/effect.ts";
import { AckLost, NotSent, type Observation, outcome } from "../../src/sdk/outcomes.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { ManualClock } from "../../testkit/clock.ts";
import {
  begin,
  decided,
  dispatched,
  ended,
  type Holder,
  hold,
  holdItem,
  intent,
  settled,
} from "../../testkit/conformance/holder.ts";
import { openBlank } from "../blank-database.ts";
import { mortal, type Replica, type Stage, setStage, signal, stageOn, story, tenant, ttl, waiting } from "./stage.ts";

const day = 86_400_000;
const none = { found: 0, done: 0, failed: 0, lagMs: 0 };

/** A run that waits for an inline effect in doubt. */
async function inDoubt(
  store: Store,
  semantics: "idempotent" | "non_idempotent" = "non_idempotent",
  sendWithinMs = 1_000,
): Promise<Holder> {
  const run = await begin(store);
  await run.write(intent(0, { semantics }), dispatched(0, { sendWithinMs }));
  await run.write(settled(0, "UNKNOWN", { reason: "ack_lost" }));
  await run.release();
  return run;
}

/** A process whose effect observes what `see` returns, and counts the observations. */
function seeing(
  stage: Stage,
  see: () => Observation | Promise<Observation>,
  options: Partial<EffectOptions<unknown, unknown>> = {},
): Replica & { readonly observations: () => number } {
  let observations = 0;
  const observe = () => {
    observations++;
    return see();
  };
  const { effects: _none, ...deps } = {
    effects: [],
    ...stage.replica({ effects: [stage.wire({ observe, businessKey: () => "k", ...options })] }),
  };
  return { ...deps, observations: () => observations };
}

async function evidence(
  store: Store,
  sender: Holder,
  message: { happened: boolean; value?: unknown; error?: unknown },
): Promise<void> {
  await store.intake.leaveEvidence(tenant, sender.attempt(0), message);
}

const hostile = (): never => {
  throw new Error("do not read this");
};

describe("reconciler", () => {
  it("uses evidence before it observes", async () => {
    const stage = await setStage();
    const [happened, not] = [await inDoubt(stage.store), await inDoubt(stage.store)];
    await evidence(stage.store, happened, { happened: true, value: "receipt" });
    await evidence(stage.store, not, { happened: false });
    const deps = seeing(stage, () => outcome.inconclusive("?"), { compensate: () => {} });
    expect(await reconciler(deps).runOnce(10)).toMatchObject({ found: 2, done: 2 });
    expect(await happened.effect(0)).toMatchObject({ status: "CONFIRMED", reason: "evidence" });
    expect(await happened.effect(0, 1)).toMatchObject({ status: "ARMED" });
    expect(await not.effect(0)).toMatchObject({ status: "FAILED", reason: "evidence" });
    expect(deps.observations()).toBe(0);
    expect((await happened.view()).status).toBe("RUNNABLE");
  });

  it("weighs evidence that arrives during an observation before the verdict", async () => {
    const stage = await setStage();
    const run = await inDoubt(stage.store);
    const deps = seeing(stage, async () => {
      await evidence(stage.store, run, { happened: true, value: "receipt" });
      return outcome.absent({ final: true });
    });
    expect(await reconciler(deps).runOnce(10)).toMatchObject({ done: 1 });
    expect(await story(stage.store, run)).toEqual(["CONFIRMED evidence"]);
    expect(deps.observations()).toBe(1);
  });

  it("confirms the effect and arms its obligation in one append", async () => {
    const stage = await setStage();
    const run = await inDoubt(stage.store);
    const deps = seeing(stage, () => outcome.confirmed("found"), { compensate: () => {} });
    await reconciler(deps).runOnce(10);
    expect(await story(stage.store, run)).toEqual(["confirmed", "CONFIRMED observed"]);
    expect(await run.effect(0, 1)).toMatchObject({ status: "ARMED" });
  });

  it("does not settle an absence while the sender could still send", async () => {
    const stage = await setStage();
    const { store, clock } = stage;
    const run = await inDoubt(store, "non_idempotent", 1_000);
    const slow = signal<Observation>();
    let wait = true;
    const see = () => (wait ? slow.come : outcome.absent());
    const deps = seeing(stage, see, { settleDelay: "10s", retry: { absent: 0 } });
    // It starts a moment before the deadline and ends long after: it may have missed a send in between.
    await clock.elapse(11_000);
    const round = reconciler(deps).runOnce(10);
    await clock.elapse(5_000);
    slow.give(outcome.absent());
    wait = false;
    await round;
    expect(await run.effect(0)).toMatchObject({ status: "UNKNOWN" });
    await clock.elapse(1);
    await reconciler(deps).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "FAILED", reason: "ABSENT" });
    expect(await story(store, run)).toEqual(["absent", "absent", "FAILED ABSENT"]);
    expect((await run.view()).notes).toBe(1);
  });

  it("observes an early absence again exactly when it counts", async () => {
    const stage = await setStage();
    const run = await inDoubt(stage.store, "non_idempotent", 1_000);
    const deps = seeing(stage, () => outcome.absent(), { settleDelay: "10s", retry: { absent: 0 } });
    await reconciler(deps).runOnce(10);
    await stage.clock.elapse(11_000);
    expect(await reconciler(deps).runOnce(10)).toEqual(none);
    await stage.clock.elapse(1);
    expect(await reconciler(deps).runOnce(10)).toMatchObject({ done: 1 });
    expect(await run.effect(0)).toMatchObject({ status: "FAILED", reason: "ABSENT" });
  });

  it.each([
    ["forward while it observes", day, []],
    ["back while it observes", -day, []],
    ["back while it judges", 0, [-day]],
    ["forward while it judges", 0, [0, day]],
    ["forward while it observes, and back while it judges", day, [-day]],
  ])("does not take a clock that is set %s for time that has passed", async (_when, during, steps) => {
    const clock = new ManualClock();
    // The clock of the store's machine, which is not that of the process.
    let offMs = 0;
    const stepped: Clock = {
      mono: () => clock.mono(),
      wall: () => clock.wall() + offMs,
      boot: () => clock.boot(),
      after: (ms, fn) => clock.after(ms, fn),
      immediate: (fn) => clock.immediate(fn),
      sleep: (ms, signal) => clock.sleep(ms, signal),
    };
    const store = await openSqlite({ file: ":memory:", clock: stepped, open: openBlank });
    onTestFinished(() => store.close());
    const stage = { clock, ...stageOn(store, clock) };
    const run = await inDoubt(store, "non_idempotent", 1_000);
    let [reads, step] = [0, during];
    const now = async (): Promise<number> => {
      const at = await store.read.now();
      offMs += steps[reads++] ?? 0;
      return at;
    };
    const see = (): Observation => {
      offMs += step;
      step = 0;
      return outcome.absent();
    };
    const deps = seeing(stage, see, { settleDelay: "10s", retry: { absent: 0 } });
    await clock.elapse(500);
    await reconciler({ ...deps, store: { ...store, read: { ...store.read, now } } }).runOnce(10);
    expect([reads, deps.observations()]).toEqual([2, 1]);
    expect(await run.effect(0)).toMatchObject({ status: "UNKNOWN" });
    await clock.elapse(10_501); // it is observed again when the window is over, whatever the wall clock shows
    await reconciler(deps).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "FAILED", reason: "ABSENT" });
  });

  it("settles a final absence at once", async () => {
    const stage = await setStage();
    const run = await inDoubt(stage.store);
    await reconciler(seeing(stage, () => outcome.absent({ final: true }), { retry: { absent: 0 } })).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "FAILED", reason: "ABSENT" });
  });

  it("sends an absent effect again under its keys as a new attempt, as often as the policy allows", async () => {
    const stage = await setStage();
    const { clock, store, world } = stage;
    const run = await inDoubt(store);
    const sent: { attempt: number; businessKey: string | undefined }[] = [];
    const lose = ({ attempt, businessKey }: EffectContext) => {
      sent.push({ attempt, businessKey });
      throw new AckLost();
    };
    const options = { observe: () => outcome.absent({ final: true }), businessKey: () => "k", retry: { absent: 2 } };
    const deps = stage.replica({ effects: [stage.wire(options, lose)] });
    for (let k = 0; k < 8; k++) {
      await reconciler(deps).runOnce(10);
      await clock.elapse(10_000);
      await outbox(deps).runOnce(10);
    }
    expect(sent.map(({ attempt }) => attempt)).toEqual([2, 3]);
    expect(new Set(world.map(({ key }) => key)).size).toBe(1);
    expect((await story(store, run)).filter((line) => line !== "absent")).toEqual([
      "PENDING ABSENT",
      "attempt 2",
      "UNKNOWN ack_lost",
      "PENDING ABSENT",
      "attempt 3",
      "UNKNOWN ack_lost",
      "FAILED ABSENT",
    ]);
    expect((await run.view()).notes).toBe(1);
  });

  it("sends an absent effect of the outbox again only if its author says so", async () => {
    for (const [absent, to] of [
      [undefined, "FAILED"],
      [1, "PENDING"],
    ] as const) {
      const stage = await setStage();
      const run = await inDoubt(stage.store);
      const retry = absent === undefined ? {} : { retry: { absent } };
      const options = { dispatch: "outbox", ...retry } as const;
      await reconciler(seeing(stage, () => outcome.absent({ final: true }), options)).runOnce(10);
      expect(await run.effect(0)).toMatchObject({ status: to, reason: "ABSENT" });
    }
  });

  it.each([
    ["before it is sent again", 0],
    ["while it is sent again", 1],
    ["after it was sent again", 2],
  ])("an attempt taken for absent that reports late, %s, leaves no surplus behind", async (_, when) => {
    const stage = await setStage();
    const { clock, store } = stage;
    const run = await inDoubt(store);
    const compensated: unknown[] = [];
    const late = () => evidence(store, run, { happened: true, value: "first" });
    const options = {
      observe: () => outcome.absent({ final: true }),
      businessKey: () => "k",
      compensate: (_args: unknown, result: unknown) => void compensated.push(result),
    };
    const send = async () => {
      if (when === 1) await late();
      return "second";
    };
    const deps = stage.replica({ effects: [stage.wire(options, send)] });
    await reconciler(deps).runOnce(10);
    if (when === 0) await late();
    await clock.elapse(10_000);
    await outbox(deps).runOnce(10);
    if (when === 2) await late();
    for (let k = 0; k < 3; k++) {
      await reconciler(deps).runOnce(10);
      await compensation(deps).runOnce(10);
    }
    const sent = when === 0 ? [] : [expect.objectContaining({ what: "wire" })];
    expect(stage.world).toEqual(sent);
    expect(compensated).toEqual(when === 0 ? [] : ["first"]);
    const { status, outcome: held } = await run.effect(0);
    expect([status, decode(held!)]).toEqual(["CONFIRMED", { value: when === 0 ? "first" : "second" }]);
    expect(await run.effect(0, 1)).toMatchObject({ status: "ARMED" });
  });

  it("does not send an absent effect again for a run that is ending", async () => {
    const stage = await setStage();
    const run = await begin(stage.store);
    await run.write(intent(0, { semantics: "non_idempotent" }), dispatched(0, { sendWithinMs: 1_000 }));
    await run.write(settled(0, "UNKNOWN", { reason: "ack_lost" }));
    await run.write(decided("failed"));
    await run.release();
    await reconciler(seeing(stage, () => outcome.absent({ final: true }))).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "FAILED", reason: "ABSENT" });
  });

  it("retries an absent idempotent effect under its key", async () => {
    const stage = await setStage();
    const run = await inDoubt(stage.store, "idempotent");
    const deps = seeing(stage, () => outcome.absent(), { semantics: "idempotent" });
    await reconciler(deps).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "PENDING", reason: "absent" });
    await outbox(deps).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "CONFIRMED" });
    expect(stage.world).toMatchObject([{ key: "key-0" }]);
  });

  it("confirms a duplicate and records one surplus obligation for each extra effect, in one append", async () => {
    const stage = await setStage();
    const run = await inDoubt(stage.store);
    const compensated: unknown[] = [];
    const compensate = (_args: unknown, result: unknown) => void compensated.push(result);
    const deps = seeing(stage, () => outcome.duplicate("first", ["second", "third"]), { compensate });
    await reconciler(deps).runOnce(10);
    expect(await story(stage.store, run)).toEqual(["duplicate", "CONFIRMED duplicate", "surplus 2", "surplus 3"]);
    expect(await compensation(deps).runOnce(10)).toMatchObject({ found: 2, done: 2 });
    expect(compensated.toSorted()).toEqual(["second", "third"]);
    expect(await run.effect(0, 1)).toMatchObject({ status: "ARMED" });
    for (const sub of [2, 3]) expect(await run.effect(0, sub)).toMatchObject({ status: "COMPENSATED", surplus: true });
  });

  it("makes a surplus effect without compensate STUCK", async () => {
    const stage = await setStage();
    const run = await inDoubt(stage.store);
    await reconciler(seeing(stage, () => outcome.duplicate("first", ["second"]))).runOnce(10);
    expect(await run.effect(0, 2)).toMatchObject({ status: "STUCK", surplus: true });
  });

  it("observes again with a growing backoff, then makes the effect STUCK", async () => {
    const stage = await setStage();
    const { clock } = stage;
    const run = await inDoubt(stage.store);
    const answers: (() => Observation)[] = [
      () => outcome.inconclusive("busy"),
      () => {
        throw new Error("503");
      },
      () => undefined as unknown as Observation,
    ];
    let k = 0;
    const deps = seeing(stage, () => answers[k++ % 3]!());
    let nominal = 1_000;
    for (let observations = 1; observations < 10; observations++) {
      expect(await reconciler(deps).runOnce(10)).toMatchObject({ found: 1, done: 1 });
      expect((await run.effect(0)).status).toBe("UNKNOWN");
      await clock.elapse(nominal / 2 - 1);
      expect(await reconciler(deps).runOnce(10)).toEqual(none);
      await clock.elapse(nominal / 2 + 1);
      nominal = Math.min(60_000, nominal * 2);
    }
    await reconciler(deps).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "STUCK", reason: "inconclusive" });
    expect(deps.observations()).toBe(10);
    expect((await run.view()).notes).toBe(1);
    await clock.elapse(120_000);
    expect(await reconciler(deps).runOnce(10)).toEqual(none);
  });

  it("makes an unobservable effect STUCK unless it may be retried, and then within its policy", async () => {
    const stage = await setStage();
    const { store, clock, replica, wire, world } = stage;
    const once = await inDoubt(store);
    await reconciler(replica({ effects: [wire()] })).runOnce(10);
    expect(await once.effect(0)).toMatchObject({ status: "STUCK", reason: "unobservable" });
    const again = await inDoubt(store, "idempotent");
    const effects = [
      wire({ semantics: "idempotent", retry: { attempts: 4 } }, () => {
        throw new AckLost("the gateway is gone");
      }),
    ];
    const deps = replica({ effects });
    for (let k = 0; k < 30; k++) {
      await reconciler(deps).runOnce(10);
      await outbox(deps).runOnce(10);
      await clock.elapse(60_000);
    }
    const row = await again.effect(0);
    expect(row).toMatchObject({ status: "STUCK", reason: "exhausted" });
    expect(decode(row.outcome!)).toMatchObject({ error: { message: "the gateway is gone" } });
    expect(world).toHaveLength(4);
  });

  it("leaves an unknown effect to another process", async () => {
    const stage = await setStage();
    const run = await inDoubt(stage.store);
    const ignorant = stage.replica();
    expect(await reconciler(ignorant).runOnce(10)).toMatchObject({ done: 1, unserved: 1 });
    expect(ignorant.logged).toContain("reactor.no_handler");
    await stage.clock.elapse(1_000);
    await reconciler(seeing(stage, () => outcome.confirmed(1))).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "CONFIRMED" });
  });

  it("confirms an observed effect whose value cannot be stored", async () => {
    const stage = await setStage();
    const run = await inDoubt(stage.store);
    await reconciler(seeing(stage, () => outcome.confirmed(() => {}))).runOnce(10);
    expect(await story(stage.store, run)).toEqual(["confirmed", "CONFIRMED observed"]);
    expect(decode((await run.effect(0)).outcome!)).toMatchObject({ error: { code: "TAPE_NOT_ENCODABLE" } });
  });

  it.each<[string, () => unknown]>([
    ["surplus effects that cannot be stored", () => outcome.duplicate(1, [() => {}])],
    ["a result that throws when it is read", () => Object.defineProperty({}, "observed", { get: hostile })],
  ])("%s: inconclusive, and the item is not lost", async (_, see) => {
    const stage = await setStage();
    const run = await inDoubt(stage.store);
    await reconciler(seeing(stage, see as never)).runOnce(10);
    expect(await story(stage.store, run)).toEqual(["inconclusive"]);
  });

  it("records late evidence after FAILED(ABSENT) as surplus, once", async () => {
    const stage = await setStage();
    const { store } = stage;
    const run = await inDoubt(store);
    const compensated: unknown[] = [];
    const compensate = (_args: unknown, result: unknown) => void compensated.push(result);
    const deps = seeing(stage, () => outcome.absent({ final: true }), { compensate, retry: { absent: 0 } });
    await reconciler(deps).runOnce(10);
    await evidence(store, run, { happened: true, value: "late" });
    expect(await reconciler(deps).runOnce(10)).toMatchObject({ done: 1 });
    await evidence(store, run, { happened: true, value: "late again" });
    expect(await reconciler(deps).runOnce(10)).toMatchObject({ done: 1 });
    expect(await run.effect(0)).toMatchObject({ status: "FAILED", reason: "ABSENT" });
    await compensation(deps).runOnce(10);
    expect(compensated).toEqual(["late"]);
    expect(await compensation(deps).runOnce(10)).toEqual(none);
  });

  it("uses evidence that the run received before the handoff", async () => {
    const stage = await setStage();
    const { store } = stage;
    const run = await begin(store);
    await run.write(intent(0, { semantics: "non_idempotent" }), dispatched(0));
    await evidence(store, run, { happened: true, value: "receipt" }); // the run's holder has read its inbox already
    await run.write(settled(0, "UNKNOWN", { reason: "lease_lost" }));
    await run.release(1);
    const deps = seeing(stage, () => outcome.absent({ final: true }));
    expect(await reconciler(deps).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect([await story(store, run), deps.observations()]).toEqual([["CONFIRMED evidence"], 0]);
  });

  it("retries by policy what a late owner reports as not sent, then fails", async () => {
    const stage = await setStage();
    const { store, clock, world } = stage;
    const run = await inDoubt(store);
    const deps = seeing(stage, () => outcome.inconclusive("?"), { retry: { attempts: 2, base: "1s" } });
    await evidence(store, run, { happened: false, error: new NotSent("no line") });
    await reconciler(deps).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "PENDING", reason: "not_sent" });
    expect((await outbox(deps).runOnce(10)).found).toBe(0);
    await clock.elapse(60_000);
    expect(await outbox(deps).runOnce(10)).toMatchObject({ done: 1 });
    expect([await story(store, run), world.length]).toEqual([
      ["PENDING not_sent", "attempt 2", "CONFIRMED returned"],
      1,
    ]);
    const last = await inDoubt(store);
    await evidence(store, last, { happened: false, error: new NotSent("no line") });
    await reconciler(seeing(stage, () => outcome.inconclusive("?"), { retry: { attempts: 1 } })).runOnce(10);
    expect(await last.effect(0)).toMatchObject({ status: "FAILED", reason: "not_sent" });
  });

  it("does not count an attempt that was interrupted before sending, and retries it at once", async () => {
    const stage = await setStage();
    const { store } = stage;
    const run = await inDoubt(store);
    const deps = seeing(stage, () => outcome.inconclusive("?"), { retry: { attempts: 1 } });
    const lost = new TapeError("TAPE_LEASE_LOST", "the deadline has passed");
    await evidence(store, run, { happened: false, error: new NotSent("the lease was lost", { cause: lost }) });
    await reconciler(deps).runOnce(10);
    expect(await outbox(deps).runOnce(10)).toMatchObject({ done: 1 });
    expect(await story(store, run)).toEqual(["PENDING not_sent", "attempt 2", "CONFIRMED returned"]);
  });

  it("creates no obligation for a late result of a failed read", async () => {
    const stage = await setStage();
    const { store } = stage;
    const run = await waiting(store, "read");
    const item = await holdItem(store, run.id, 0);
    const of = { run: run.journal };
    await item.write(dispatched(0, of), settled(0, "FAILED", { ...of, reason: "exhausted" }));
    await item.release();
    await evidence(store, item, { happened: true, value: "late" });
    expect(await reconciler(seeing(stage, () => outcome.absent())).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(await store.read.effects(tenant, { run: run.id, role: "compensation" })).toEqual([]);
  });

  it("sends nothing in an ending run: an unsent effect fails", async () => {
    const stage = await setStage();
    const { store } = stage;
    const run = await inDoubt(store);
    const driver = await hold(store, run.id);
    await driver.write(decided("cancelled"));
    await driver.release();
    await evidence(store, run, { happened: false, error: new NotSent("no line") });
    await reconciler(seeing(stage, () => outcome.inconclusive("?"))).runOnce(10);
    expect(await run.effect(0)).toMatchObject({ status: "FAILED", reason: "not_sent" });
  });

  it("settles an effect in doubt of a decided run, and notifies the run", async () => {
    const stage = await setStage();
    const run = await inDoubt(stage.store);
    const driver = await hold(stage.store, run.id);
    await driver.write(decided("cancelled"));
    await driver.release();
    await reconciler(seeing(stage, () => outcome.absent({ final: true }))).runOnce(10);
    const [woken] = [await hold(stage.store, run.id)];
    await woken.write(ended("CANCELLED", { notesTaken: 1 }));
    expect((await run.view()).status).toBe("CANCELLED");
  });

  it("observes with one of two replicas; a third takes over after a crash", async () => {
    const stage = await setStage();
    const { store, clock } = stage;
    const run = await inDoubt(store);
    const mine = mortal(store);
    const dying = seeing(stage, () => {
      mine.die();
      return outcome.confirmed("unheard");
    });
    void reconciler({ ...dying, store: mine.store, keeper: stage.replica({ store: mine.store }).keeper }).runOnce(10);
    await mine.died;
    const [a, b] = [seeing(stage, () => outcome.confirmed("a")), seeing(stage, () => outcome.confirmed("b"))];
    expect(await reconciler(a).runOnce(10)).toEqual(none);
    await clock.elapse(ttl + 1);
    const found = await Promise.all([reconciler(a).runOnce(10), reconciler(b).runOnce(10)]);
    expect(found.map((counts) => counts.found).toSorted()).toEqual([0, 1]);
    expect(a.observations() + b.observations()).toBe(1);
    expect(await run.effect(0)).toMatchObject({ status: "CONFIRMED" });
    const terms = await store.read.terms(tenant, { journal: (await run.effect(0)).item! });
    expect(terms.map(({ endReason }) => endReason)).toEqual(["expired", "released"]);
  });

  it("fences an observation whose lease expired: the successor's verdict stands", async () => {
    const stage = await setStage();
    const { store, clock } = stage;
    const run = await inDoubt(store);
    const mine = mortal(store);
    const late = signal<Observation>();
    const slow = seeing(stage, () => late.come);
    const unsubscribe = { ...store, claim: { ...mine.store.claim, find: store.claim.find } };
    const round = reconciler({ ...slow, keeper: stage.replica({ store: unsubscribe }).keeper }).runOnce(10);
    mine.die();
    await clock.elapse(ttl + 1);
    expect(await round).toMatchObject({ found: 1, failed: 1 });
    await reconciler(seeing(stage, () => outcome.confirmed("seen"))).runOnce(10);
    late.give(outcome.absent({ final: true }));
    await clock.elapse(ttl);
    expect(await story(store, run)).toEqual(["confirmed", "CONFIRMED observed"]);
  });
});

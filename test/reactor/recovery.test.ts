import { describe, expect, it } from "vitest";
import { RunDriver } from "../../src/engine/run-driver.ts";
import { compensation } from "../../src/reactor/compensation.ts";
import { outbox } from "../../src/reactor/outbox.ts";
import type { Reactor } from "../../src/reactor/reactor.ts";
import { recovery } from "../../src/reactor/recovery.ts";
import { timers } from "../../src/reactor/timers.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { DefiniteFailure } from "../../src/sdk/outcomes.ts";
import { type AnyWorkflow, workflow } from "../../src/sdk/workflow.ts";
import { mortal, type Parts, type Replica, type Stage, setStage, signal, tenant, ttl } from "./stage.ts";

const none = { found: 0, done: 0, failed: 0, lagMs: 0 };

function driver(stage: Stage, parts: Parts, concurrency = 10): { reactor: Reactor; worker: RunDriver; deps: Replica } {
  const deps = stage.replica(parts);
  const worker = new RunDriver({ ...deps, concurrency });
  return { reactor: recovery(worker), worker, deps };
}

const create = (stage: Stage, id: string, name: string): Promise<unknown> =>
  stage.store.intake.createRuns(tenant, [{ id, workflow: name, input: null }]);

const statusOf = async (stage: Stage, id: string): Promise<string | undefined> =>
  (await stage.store.read.run(tenant, id))?.status;

describe("recovery", () => {
  it("drives a RUNNABLE run once, however many processes poll", async () => {
    const stage = await setStage();
    const steps: string[] = [];
    const hello = workflow("hello", (tape) => tape.step("greet", () => steps.push("greeted"))) as AnyWorkflow;
    await create(stage, "r", "hello");
    const rounds = await Promise.all([1, 2, 3].map(() => driver(stage, { workflows: [hello] }).reactor.runOnce(10)));
    expect(rounds.reduce((sum, { found }) => sum + found, 0)).toBe(1);
    expect(await statusOf(stage, "r")).toBe("COMPLETED");
    expect(steps).toHaveLength(1);
  });

  it("takes over a RUNNING run after its lease expired, and resumes from its journal", async () => {
    const stage = await setStage();
    const calls: string[] = [];
    const mine = mortal(stage.store);
    let dying = true;
    const two = workflow("two", async (tape) => {
      await tape.step("first", () => void calls.push("first"));
      await tape.step("second", () => {
        calls.push("second");
        if (dying) mine.die();
      });
    }) as AnyWorkflow;
    await create(stage, "r", "two");
    void driver(stage, { workflows: [two], store: mine.store }).reactor.runOnce(10);
    await mine.died;
    const { reactor } = driver(stage, { workflows: [two] });
    expect(await reactor.runOnce(10)).toEqual(none);
    dying = false;
    await stage.clock.elapse(ttl + 1);
    expect(await reactor.runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(calls).toEqual(["first", "second", "second"]);
    expect(await statusOf(stage, "r")).toBe("COMPLETED");
  });

  it("leaves a WAITING run alone until a note is in its inbox", async () => {
    const stage = await setStage();
    const ok = gate<boolean>("ok");
    const asks = workflow("asks", (tape) => tape.gate(ok)) as AnyWorkflow;
    await create(stage, "r", "asks");
    const { reactor } = driver(stage, { workflows: [asks] });
    await reactor.runOnce(10);
    expect(await statusOf(stage, "r")).toBe("WAITING");
    await stage.clock.elapse(ttl * 10);
    expect(await reactor.runOnce(10)).toEqual(none);
    await stage.store.intake.signal(tenant, "r", { name: "ok", value: true });
    expect(await reactor.runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(await statusOf(stage, "r")).toBe("COMPLETED");
  });

  it("resumes a sleeping run at its timer", async () => {
    const stage = await setStage();
    const sleeps = workflow("sleeps", (tape) => tape.sleep("1h")) as AnyWorkflow;
    await create(stage, "r", "sleeps");
    const { reactor, deps } = driver(stage, { workflows: [sleeps] });
    await reactor.runOnce(10);
    await stage.clock.elapse(3_599_999);
    expect(await timers(deps).runOnce(10)).toEqual(none);
    await stage.clock.elapse(1);
    await timers(deps).runOnce(10);
    await reactor.runOnce(10);
    expect(await statusOf(stage, "r")).toBe("COMPLETED");
  });

  it("resumes a run that waits, ends and compensates at each step", async () => {
    const stage = await setStage();
    const compensated: unknown[] = [];
    const options = { compensate: (_args: unknown, result: unknown) => void compensated.push(result) };
    const wire = effect("wire", (n: number) => `wired ${n}`, { dispatch: "outbox", ...options });
    const fails = workflow("fails", async () => {
      await wire(1);
      await wire(2);
      throw new Error("no");
    }) as AnyWorkflow;
    await create(stage, "r", "fails");
    const { reactor, deps } = driver(stage, { workflows: [fails], effects: [wire as never] });
    const all = [reactor, outbox(deps), compensation(deps)];
    for (let k = 0; k < 8; k++) for (const one of all) await one.runOnce(10);
    expect(await statusOf(stage, "r")).toBe("COMPENSATED");
    expect(compensated).toEqual(["wired 2", "wired 1"]);
  });

  it("stops the chain at a stuck compensation, and makes the run STUCK", async () => {
    const stage = await setStage();
    const compensated: unknown[] = [];
    const compensate = (n: number) => {
      compensated.push(n);
      throw new DefiniteFailure("cannot be compensated");
    };
    const wire = effect("wire", (n: number) => n, { compensate });
    const fails = workflow("fails", async () => {
      await wire(1);
      await wire(2);
      throw new Error("no");
    }) as AnyWorkflow;
    await create(stage, "r", "fails");
    const { reactor, deps } = driver(stage, { workflows: [fails], effects: [wire as never] });
    for (let k = 0; k < 5; k++) for (const one of [reactor, compensation(deps)]) await one.runOnce(10);
    expect(await statusOf(stage, "r")).toBe("STUCK");
    expect(compensated).toEqual([2]);
  });

  it("reports how long the oldest run had been due or abandoned", async () => {
    const stage = await setStage();
    const { clock, store } = stage;
    const quick = workflow("quick", () => 1) as AnyWorkflow;
    const { reactor } = driver(stage, { workflows: [quick] });
    await create(stage, "early", "quick");
    await clock.elapse(700);
    await create(stage, "late", "quick");
    await clock.elapse(50);
    expect(await reactor.runOnce(10)).toMatchObject({ found: 2, done: 2, lagMs: 750 });
    const mine = mortal(store);
    const stay = workflow("stay", (tape) => tape.step("body", () => mine.die())) as AnyWorkflow;
    await create(stage, "left", "stay");
    void driver(stage, { workflows: [stay], store: mine.store }).reactor.runOnce(10);
    await mine.died;
    await clock.elapse(ttl + 400);
    expect(await driver(stage, { workflows: [stay] }).reactor.runOnce(10)).toMatchObject({ found: 1, lagMs: 400 });
  });

  it("claims other runs while one is slow", async () => {
    const stage = await setStage();
    const never = signal();
    const slow = workflow("slow", (tape) => tape.step("wait", () => never.come)) as AnyWorkflow;
    const quick = workflow("quick", () => 1) as AnyWorkflow;
    const { reactor, worker } = driver(stage, { workflows: [slow, quick] }, 2);
    await create(stage, "slow", "slow");
    const round = await reactor.poll!(10, () => {});
    expect([round.found, worker.capacity]).toEqual([1, 1]);
    await create(stage, "quick", "quick");
    expect(await reactor.runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(await statusOf(stage, "quick")).toBe("COMPLETED");
    never.give();
    expect(await round.done).toMatchObject({ done: 1 });
  });

  it("leaves a run of an unknown workflow to other processes, and logs it if none claims it", async () => {
    const stage = await setStage();
    await create(stage, "r", "elsewhere");
    const quick = workflow("quick", () => 1) as AnyWorkflow;
    const { reactor, deps } = driver(stage, { workflows: [quick] });
    expect(await reactor.runOnce(10)).toEqual(none);
    expect(deps.logged).toEqual([]); // another process may be about to claim it
    await stage.clock.elapse(10_000);
    expect(await reactor.runOnce(10)).toEqual({ ...none, unserved: 1 });
    expect(await reactor.runOnce(10)).toEqual(none);
    expect(deps.logged).toEqual(["reactor.no_handler"]);
    await stage.clock.elapse(60_000);
    expect(await reactor.runOnce(10)).toEqual({ ...none, unserved: 1 });
    const terms = await stage.store.read.terms(tenant, { run: "r" });
    expect(terms).toEqual([]); // no process has claimed it
    const elsewhere = workflow("elsewhere", () => 1) as AnyWorkflow;
    expect(await driver(stage, { workflows: [elsewhere] }).reactor.runOnce(10)).toMatchObject({ done: 1 });
    expect(await statusOf(stage, "r")).toBe("COMPLETED");
    await stage.clock.elapse(60_000);
    expect(await reactor.runOnce(10)).toEqual(none);
  });

  it("keeps the runs of two processes with different workflows apart, even abandoned ones", async () => {
    const stage = await setStage();
    const mine = mortal(stage.store);
    let dying = true;
    const a = workflow("a", (tape) => tape.step("body", () => dying && mine.die())) as AnyWorkflow;
    const b = workflow("b", () => 1) as AnyWorkflow;
    await create(stage, "a", "a");
    void driver(stage, { workflows: [a], store: mine.store }).reactor.runOnce(10);
    await mine.died;
    dying = false;
    await create(stage, "b", "b");
    await stage.clock.elapse(ttl + 1);
    const [ofA, ofB] = [driver(stage, { workflows: [a] }), driver(stage, { workflows: [b] })];
    expect(await ofB.reactor.runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect([await statusOf(stage, "a"), await statusOf(stage, "b")]).toEqual(["RUNNING", "COMPLETED"]);
    expect(await ofB.reactor.runOnce(10)).toMatchObject({ found: 0 });
    expect(await ofA.reactor.runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(await statusOf(stage, "a")).toBe("COMPLETED");
  });
});

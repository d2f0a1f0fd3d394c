import { describe, expect, it } from "vitest";
import { RunDriver } from "../../src/engine/run-driver.ts";
import type { Reactor } from "../../src/reactor/reactor.ts";
import { recovery } from "../../src/reactor/recovery.ts";
import { type AnyWorkflow, workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { calm, mortal, type Replica, type Stage, setStage, signal, tenant, ttl } from "./stage.ts";

const none = { found: 0, done: 0, failed: 0, lagMs: 0 };

function driver(stage: Stage, workflows: AnyWorkflow[], store?: Store, of = tenant): Replica & { reactor: Reactor } {
  const deps = stage.replica({ workflows, ...(store && { store }) });
  return { ...deps, reactor: recovery(new RunDriver({ ...deps, tenant: of, concurrency: 10 })) };
}

const create = (stage: Stage, id: string, name: string): Promise<unknown> =>
  stage.store.intake.createRuns(tenant, [{ id, workflow: name, input: null }]);

const statusOf = async (stage: Stage, id: string): Promise<string | undefined> =>
  (await stage.store.read.run(tenant, id))?.status;

async function kindsOf({ store }: Stage, run: string): Promise<string[]> {
  const records = await store.read.journal(tenant, { run });
  return records.map(({ kind }) => kind).filter((kind) => !kind.startsWith("term."));
}

describe("recovery", () => {
  it("loses nothing in a crash before the first step: another process drives after the expiry", async () => {
    const stage = await setStage();
    const steps: string[] = [];
    const hello = workflow("hello", (tape) => tape.step("greet", () => steps.push("greeted"))) as AnyWorkflow;
    await create(stage, "r", "hello");
    const mine = mortal(stage.store);
    mine.dieAt("claim.find", "after");
    void driver(stage, [hello], mine.store).reactor.runOnce(10);
    await mine.died;
    const { reactor } = driver(stage, [hello]);
    expect(await reactor.runOnce(10)).toEqual(none);
    expect(steps).toEqual([]);
    await stage.clock.elapse(ttl + 1);
    expect(await reactor.runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(steps).toHaveLength(1);
    expect(await statusOf(stage, "r")).toBe("COMPLETED");
  });

  it("continues with the successor; the late holder cannot write", async () => {
    const stage = await setStage();
    const answers = [signal<string>(), signal<string>()];
    let calls = 0;
    const slow = workflow("slow", (tape) => tape.step("ask", () => answers[calls++]!.come)) as AnyWorkflow;
    await create(stage, "r", "slow");
    const unsubscribe = mortal(stage.store);
    const late = driver(stage, [slow], { ...stage.store, claim: unsubscribe.store.claim });
    const round = late.reactor.runOnce(10);
    await calm();
    unsubscribe.die(); // its heartbeats are lost; its other calls arrive
    await stage.clock.elapse(ttl + 1);
    const successor = driver(stage, [slow]).reactor.runOnce(10);
    await calm();
    answers[0]!.give("late");
    expect(await round).toMatchObject({ found: 1, done: 0, failed: 1 });
    expect(await kindsOf(stage, "r")).toEqual(["run.created"]);
    answers[1]!.give("in time");
    expect(await successor).toMatchObject({ found: 1, done: 1 });
    expect(await kindsOf(stage, "r")).toEqual(["run.created", "step.done", "run.ended"]);
    expect((await stage.store.read.run(tenant, "r"))?.outcome).toBe("in time");
  });

  it("retries an unreadable run soon without blocking others", async () => {
    const stage = await setStage();
    const { store, clock } = stage;
    const quick = workflow("quick", () => 1) as AnyWorkflow;
    for (const id of ["bad", "good"]) await create(stage, id, "quick");
    const bad = (await store.read.run(tenant, "bad"))!.journal;
    const journal: typeof store.read.journal = (of, target, page) =>
      "journal" in target && target.journal === bad && page?.inbox !== true
        ? Promise.reject(new Error("rotten"))
        : store.read.journal(of, target, page);
    const sick = driver(stage, [quick], { ...store, read: { ...store.read, journal } });
    expect(await sick.reactor.runOnce(10)).toMatchObject({ found: 2, done: 1, failed: 1 });
    expect(sick.logged).toContain("run.drive_lost");
    expect([await statusOf(stage, "good"), await statusOf(stage, "bad")]).toEqual(["COMPLETED", "RUNNABLE"]);
    expect(await sick.reactor.runOnce(10)).toEqual(none);
    await clock.elapse(1_000);
    expect(await driver(stage, [quick]).reactor.runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(await statusOf(stage, "bad")).toBe("COMPLETED");
  });

  it("leaves another tenant's runs alone, new or abandoned, and does not log them", async () => {
    const stage = await setStage();
    const mine = mortal(stage.store);
    const stay = workflow("stay", (tape) => tape.step("body", () => mine.die())) as AnyWorkflow;
    await create(stage, "left", "stay");
    void driver(stage, [stay], mine.store).reactor.runOnce(10);
    await mine.died;
    await create(stage, "fresh", "stay");
    await stage.clock.elapse(ttl * 2);
    const stranger = driver(stage, [stay], stage.store, "globex");
    expect(await stranger.reactor.runOnce(10)).toEqual(none);
    const unaware = driver(stage, [], stage.store, "globex");
    expect(await unaware.reactor.runOnce(10)).toEqual(none);
    expect([await statusOf(stage, "fresh"), unaware.logged]).toEqual(["RUNNABLE", []]);
  });
});

import { describe, expect, it } from "vitest";
import type { Alarms } from "../../src/alarm/alarms.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { figure } from "../prometheus.ts";
import { Deployment } from "./deployment.ts";

const hello = workflow("hello", async (tape, name: string) => `hello ${await tape.step("greet", () => name)}`);
const nap = workflow("nap", async (tape, ms: number) => {
  await tape.sleep(ms);
  return tape.now();
});
const long = workflow("long", async (tape) => {
  await tape.step("work", () => new Promise(() => {}));
});
const mail = effect("mail", async (to: string) => `sent to ${to}`, { semantics: "idempotent", dispatch: "outbox" });
const mails = workflow("mails", async (_tape, to: string) => mail(to));
const runner = createRunner({ workflows: [hello, nap, mails, long], effects: [mail] });

const boundMs = 5_000;
const statusOf = async ({ time, store }: Deployment, id: string) =>
  (await time.during(store.read.run("acme", id)))?.status;

/** Lets time pass until the run has ended. Returns how long that took. */
async function ended(deployment: Deployment, id: string, withinMs: number): Promise<number> {
  const from = deployment.time.now;
  while ((await statusOf(deployment, id)) !== "COMPLETED") {
    if (deployment.time.now - from > withinMs) throw new Error(`${id} has not ended after ${withinMs} ms`);
    await deployment.time.elapse(50);
  }
  return deployment.time.now - from;
}

it("counts the alarms that it sets, and those that it cannot", async () => {
  const time = new VirtualTime();
  const store = await openStore("memory:", { clock: time });
  let isDown = false;
  const alarms: Alarms = {
    furthestMs: 86_400_000,
    set: async () => (isDown ? Promise.reject(new Error("no quota")) : undefined),
  };
  const app = await time.during(Tape.open({ store, runner, clock: time, log: "silent", serverless: { alarms } }));
  const figures = async () => {
    const text = await time.during(app.metrics.text());
    return ["set", "failed"].map((outcome) => figure(text, `tape_alarms_set_total{outcome="${outcome}"}`));
  };
  expect(await figures()).toEqual([0, 0]);
  await time.during(app.start(hello, "ada", { id: "a" }));
  expect(await figures()).toEqual([1, 0]);
  isDown = true;
  await time.during(time.sleep(60_000));
  await expect(time.during(app.start(hello, "ada", { id: "b" }))).rejects.toThrow("TAPE_UNARMED");
  expect(await figures()).toEqual([1, 1]);
  await time.during(app.close().then(() => store.close()));
});

describe("a serverless deployment", () => {
  it("an alarm finds a run that no wake-up announced, within four bounds", async () => {
    const deployment = await Deployment.open(runner);
    const { app } = await deployment.time.during(deployment.process());
    await deployment.time.during(app.start(hello, "ada", { id: "r" }));
    expect(deployment.tasks.pending).toHaveLength(1);
    expect(await ended(deployment, "r", 60_000)).toBeLessThanOrEqual(4 * boundMs + 100);
    await deployment.close();
  });

  it("a wake-up finds it at once", async () => {
    const deployment = await Deployment.open(runner);
    const { time } = deployment;
    const other = (await time.during(deployment.process())).app;
    const waker = { wake: async (reactor: string) => void (await other.react(reactor)) };
    const { app } = await time.during(deployment.process({ waker }));
    await time.during(app.start(hello, "ada", { id: "r" }));
    expect(await ended(deployment, "r", 60_000)).toBeLessThan(500);
    await deployment.close();
  });

  it("idle, it makes no call of the store in 120 s, and no alarm is left", async () => {
    const deployment = await Deployment.open(runner);
    const { app } = await deployment.time.during(deployment.process());
    await deployment.time.during(app.start(mails, "ada", { id: "r" }));
    await deployment.time.elapse(120_000);
    expect(await statusOf(deployment, "r")).toBe("COMPLETED");
    expect(deployment.tasks.pending).toEqual([]);
    const before = [deployment.calls.length, deployment.tasks.created];
    await deployment.time.elapse(120_000);
    expect([deployment.calls.length, deployment.tasks.created]).toEqual(before);
    await deployment.close();
  });

  it("a timer has an alarm at its time, however far", async () => {
    const deployment = await Deployment.open(runner);
    const { time } = deployment;
    const { app } = await time.during(deployment.process());
    const day = 86_400_000;
    await time.during(app.start(nap, 45 * day, { id: "far" }));
    await time.elapse(60_000);
    expect(deployment.tasks.pending.map(({ at }) => Math.round((at - time.wall()) / day))).toEqual([30]);
    const calls = deployment.calls.length;
    await time.elapse(29 * day);
    expect(deployment.calls.length).toBe(calls);
    await time.elapse(16 * day - 61_000);
    expect(await statusOf(deployment, "far")).toBe("WAITING");
    expect(await ended(deployment, "far", 30_000)).toBeGreaterThan(500);
    await deployment.close();
  });

  it("a hundred timers due at one moment fire together, with a few alarms", async () => {
    const deployment = await Deployment.open(runner);
    const { time, tasks } = deployment;
    const { app } = await time.during(deployment.process());
    const at = 1_800_000;
    const items = Array.from({ length: 100 }, (_, k) => ({ input: at, id: `n${k}` }));
    await time.during(app.startAll(nap, items));
    await time.elapse(120_000);
    const calls = tasks.calls;
    await time.elapse(at);
    expect(tasks.calls - calls).toBeLessThanOrEqual(4);
    const runs = await time.during(deployment.store.read.runs("acme"));
    expect(runs.filter(({ status }) => status === "COMPLETED")).toHaveLength(100);
    await deployment.close();
  });

  it("killed after the alarm, after the commit or before the wake-up, the run is found", async () => {
    for (const edge of ["before", "after"] as const) {
      for (const name of ["alarm", "intake.createRuns"]) {
        const deployment = await Deployment.open(runner);
        const { time } = deployment;
        const crashes = (boundary: { name: string; edge: string }) =>
          boundary.name === name && boundary.edge === edge ? ("crash" as const) : undefined;
        const { app } = await time.during(deployment.process({}, crashes));
        void app.start(hello, "ada", { id: "r" });
        await time.elapse(4 * boundMs + 1_000);
        const exists = name === "intake.createRuns" && edge === "after";
        expect(await statusOf(deployment, "r"), `${edge} ${name}`).toBe(exists ? "COMPLETED" : undefined);
        await time.elapse(60_000);
        expect(deployment.tasks.pending).toEqual([]);
        await deployment.close();
      }
    }
  });

  it("a worker that dies in mid-run is replaced when its lease has expired", async () => {
    const deployment = await Deployment.open(runner);
    const { time } = deployment;
    const crashes = (boundary: { name: string; edge: string }) =>
      boundary.name === "fenced.append" && boundary.edge === "before" ? ("crash" as const) : undefined;
    const { app } = await time.during(deployment.process({}, crashes));
    const { app: writer } = await time.during(deployment.process());
    await time.during(writer.start(hello, "ada", { id: "r" }));
    void app.react("recovery");
    expect(await ended(deployment, "r", 60_000)).toBeLessThanOrEqual(30_000 + 4 * boundMs);
    await deployment.close();
  });

  it("a sweep that fails is repeated by the service", async () => {
    let refusals = 3;
    const deployment = await Deployment.open(runner, { fault: () => (refusals-- > 0 ? "lost" : undefined) });
    const { time } = deployment;
    const { app } = await time.during(deployment.process());
    const code = { code: "TAPE_UNARMED" };
    await expect(time.during(app.start(hello, "ada", { id: "r" }))).rejects.toMatchObject(code);
    expect(await statusOf(deployment, "r")).toBeUndefined();
    refusals = 0;
    await time.during(app.start(nap, 5_000, { id: "r" }));
    refusals = 0;
    time.after(12_000, () => {
      refusals = 2;
    });
    expect(await ended(deployment, "r", 90_000)).toBeLessThan(60_000);
    await deployment.close();
  });

  it("a service with a wrong clock calls early: the sweep waits, or sets another alarm", async () => {
    for (const clockOffMs of [-3_000, -900, 900, 3_000]) {
      const deployment = await Deployment.open(runner, { clockOffMs });
      const { time } = deployment;
      const { app } = await time.during(deployment.process());
      await time.during(app.start(nap, 60_000, { id: "r" }));
      expect(await ended(deployment, "r", 200_000), String(clockOffMs)).toBeLessThan(60_000 + 4 * boundMs + 5_000);
      await time.elapse(60_000);
      expect(deployment.tasks.pending).toEqual([]);
      await deployment.close();
    }
  });

  it("a run that does not finish in time is released, and an alarm checks it again", async () => {
    const deployment = await Deployment.open(runner);
    const { time } = deployment;
    const { app } = await time.during(deployment.process());
    await time.during(app.start(long, undefined, { id: "r" }));
    const counts = await time.during(app.sweep({ within: "3s" }));
    expect(counts).toMatchObject({ found: 1 });
    expect(counts.alarmInMs).toBeGreaterThan(0);
    expect((await time.during(deployment.store.read.lease("acme", { run: "r" })))?.owner).toBeNull();
    await deployment.close();
  });

  it("wrong options are refused", async () => {
    const open = (serverless: unknown) => Tape.open({ store: "memory:", runner, serverless } as never);
    for (const wrong of [null, 5, {}, { alarms: {} }, { alarms: { set() {} }, waker: 5 }]) {
      await expect(open(wrong), JSON.stringify(wrong)).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
    }
    await using app = await Tape.open({ store: "memory:", runner, work: false });
    expect(() => app.sweep()).toThrow("serverless");
  });
});

import { afterEach, describe, expect, it } from "vitest";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";

const woken: number[] = [];
const sleeper = workflow("sleeper", async (tape, ms: number) => {
  await tape.sleep(ms);
  woken.push(await tape.now());
  return "awake";
});

const until = workflow("until", async (tape, moment: number) => {
  await tape.sleepUntil(new Date(moment));
  woken.push(tape.now());
  return "awake";
});
const plainly = workflow("plainly", async (tape, moment: unknown) => tape.sleepUntil(moment as number));
const approval = gate<string>("approval");
const thenGate = workflow("thenGate", async (tape, ms: number) => {
  await tape.sleep(ms);
  return tape.gate(approval);
});
const racing = workflow("racing", async (tape, _: null) => {
  const slow = tape.step("slow", () => new Promise<string>((resolve) => gates.push(() => resolve("slow"))));
  return tape.race([slow, tape.sleep(2_000).then(() => "slept")]);
});
const gates: (() => void)[] = [];

let tape: VirtualTape | undefined;
afterEach(async () => {
  await tape?.close();
  tape = undefined;
  woken.length = 0;
});

async function open(): Promise<VirtualTape> {
  tape = await VirtualTape.open({ runner: createRunner({ workflows: [sleeper, until, plainly, racing, thenGate] }) });
  return tape;
}

const statusOf = async (t: VirtualTape, id: string): Promise<string> =>
  (await t.time.during(t.tape.runs.get(id)))!.status;

const kindsOf = async (t: VirtualTape, run: string): Promise<string[]> =>
  (await t.time.during(t.store.read.journal("default", { run }))).map(({ kind }) => kind);
const notesOf = async (t: VirtualTape, run: string): Promise<number> =>
  (await t.time.during(t.store.read.journal("default", { run }, { inbox: true }))).length;

describe("a sleep that ends while its run is driven", () => {
  it("takes one record of its driver and no note", async () => {
    const t = await open();
    const run = await t.start(sleeper, 5_000, { id: "s" });
    await t.elapse(5_100);
    expect(await t.result(run)).toBe("awake");
    expect(await notesOf(t, "s")).toBe(0);
    const kinds = await kindsOf(t, "s");
    expect(kinds.filter((kind) => kind === "sleep.ended" || kind === "notes.taken")).toEqual(["sleep.ended"]);
  });

  it("is no longer listed once the run waits for something else", async () => {
    const t = await open();
    await t.start(thenGate, 5_000, { id: "a" });
    await t.elapse(6_000);
    const last = (await t.time.during(t.store.read.journal("default", { run: "a" }))).at(-1);
    expect(last).toMatchObject({ kind: "term.ended", data: { waitingFor: ["gate approval"] } });
  });

  it("at the moment of a cancellation writes nothing after the cancellation", async () => {
    const t = await open();
    for (let k = 0; k < 40; k++) {
      const id = `c${k}`;
      await t.start(sleeper, 5_000, { id });
      await t.elapse(4_995);
      const cancelled = t.cancel(id);
      for (let turn = 0; turn < k; turn++) await Promise.resolve();
      await t.elapse(10);
      await cancelled;
      await t.elapse(1_000);
      const kinds = await kindsOf(t, id);
      const taken = kinds.indexOf("notes.taken");
      expect(["CANCELLED", "COMPLETED"]).toContain(await statusOf(t, id));
      if (taken >= 0) expect(kinds.slice(taken), id).not.toContain("sleep.ended");
    }
  });

  it("wins its race against a step that is still running", async () => {
    const t = await open();
    const run = await t.start(racing, null, { id: "r" });
    await t.elapse(1_900);
    expect(await statusOf(t, "r")).toBe("RUNNING");
    await t.elapse(300);
    for (const open of gates.splice(0)) open();
    expect(await t.result(run)).toBe("slept");
    expect(await notesOf(t, "r")).toBe(0);
  });
});

describe("sleepUntil", () => {
  it("ends at that moment, or at once if the moment has passed", async () => {
    const t = await open();
    const moment = t.time.wall() + 3_600_000;
    const run = await t.start(until, moment, { id: "u" });
    await t.elapse(3_599_000);
    expect(woken).toEqual([]);
    await t.elapse(1_100);
    expect(await t.result(run)).toBe("awake");
    expect(woken[0]! - moment).toBeGreaterThanOrEqual(0);
    const past = await t.start(until, 0, { id: "p" });
    await t.elapse(100);
    expect(await t.result(past)).toBe("awake");
  });

  it("rejects anything but a moment before it writes", async () => {
    const t = await open();
    for (const bad of [Number.NaN, -1, 9e15, null, "2026-11-16"]) {
      const run = await t.start(plainly, bad, { id: String(bad) });
      await expect(t.result(run), String(bad)).rejects.toMatchObject({ cause: { code: "TAPE_BAD_INPUT" } });
      expect(await kindsOf(t, String(bad))).not.toContain("timer.set");
    }
  });
});

describe("a run whose timer is about to fire", () => {
  it("is loaded a second before, does not resume early, and needs no further term", async () => {
    const t = await open();
    const began = t.time.wall();
    const run = await t.start(sleeper, 60_000, { id: "s" });
    await t.elapse(30_000);
    expect(await statusOf(t, "s")).toBe("WAITING");
    await t.elapse(29_500);
    expect(await statusOf(t, "s")).toBe("RUNNING");
    expect(woken).toEqual([]);
    await t.elapse(600);
    expect(await t.result(run)).toBe("awake");
    expect(woken[0]! - began).toBeGreaterThanOrEqual(60_000);
    const terms = await t.time.during(t.store.read.terms("default", { run: "s" }));
    expect(terms.map(({ startReason }) => startReason)).toEqual(["start", "wake"]);
  });

  it("is released at once when the process drains", async () => {
    const t = await open();
    await t.start(sleeper, 5_000, { id: "s" });
    await t.elapse(4_500);
    expect(await statusOf(t, "s")).toBe("RUNNING");
    await t.time.during(t.tape.close());
    const lease = await t.time.during(t.store.read.lease("default", { run: "s" }));
    expect([lease?.owner, lease?.nextReactor]).toEqual([null, null]);
    expect(t.time.now).toBeLessThan(5_000);
  });

  it("is cancelled at once, like any other", async () => {
    const t = await open();
    const run = await t.start(sleeper, 5_000, { id: "s" });
    await t.elapse(4_500);
    await t.cancel("s");
    await expect(t.result(run)).rejects.toMatchObject({ details: { status: "CANCELLED" } });
    expect(t.time.now).toBeLessThan(5_000);
    expect(woken).toEqual([]);
  });
});

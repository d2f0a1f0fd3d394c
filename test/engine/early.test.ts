import { afterEach, describe, expect, it } from "vitest";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTape } from "../../src/testing/kit/virtual-tape.ts";

const woken: number[] = [];
const sleeper = workflow("sleeper", async (tape, ms: number) => {
  await tape.sleep(ms);
  woken.push(await tape.now());
  return "awake";
});

let tape: VirtualTape | undefined;
afterEach(async () => {
  await tape?.close();
  tape = undefined;
  woken.length = 0;
});

async function open(): Promise<VirtualTape> {
  tape = await VirtualTape.open({ runner: createRunner({ workflows: [sleeper] }) });
  return tape;
}

const statusOf = async (t: VirtualTape, id: string): Promise<string> =>
  (await t.time.during(t.tape.runs.get(id)))!.status;

describe("a run whose timer is about to fall due", () => {
  it("is held a second before, does not go on early, and needs no other term", async () => {
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
    expect(terms.map(({ begunBy }) => begunBy)).toEqual(["start", "wake"]);
  });

  it("is given back at once when the process drains", async () => {
    const t = await open();
    await t.start(sleeper, 5_000, { id: "s" });
    await t.elapse(4_500);
    expect(await statusOf(t, "s")).toBe("RUNNING");
    await t.time.during(t.tape.close());
    const lease = await t.time.during(t.store.read.lease("default", { run: "s" }));
    expect([lease?.owner, lease?.wants]).toEqual([null, null]);
    expect(t.time.now).toBeLessThan(5_000);
  });

  it("is cancelled as any other is, at once", async () => {
    const t = await open();
    const run = await t.start(sleeper, 5_000, { id: "s" });
    await t.elapse(4_500);
    await t.cancel("s");
    await expect(t.result(run)).rejects.toMatchObject({ details: { status: "CANCELLED" } });
    expect(t.time.now).toBeLessThan(5_000);
    expect(woken).toEqual([]);
  });
});

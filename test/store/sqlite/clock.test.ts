import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore } from "../../../src/host/open-store.ts";
import { Tape } from "../../../src/host/tape.ts";
import { createRunner, workflow } from "../../../src/sdk/workflow.ts";
import type { Store } from "../../../src/store/contract/store.ts";
import { ManualClock } from "../../../testkit/clock.ts";
import { heldRun, tenant } from "../../../testkit/conformance/frame.ts";
import { begin, dispatched, intent } from "../../../testkit/conformance/holder.ts";
import { type Place, placeForFile } from "./files.ts";

const hour = 3_600_000;

/** An operator sets the wall clock of the machine while runs sleep. */
describe.each(["a file", "memory:"])("%s: a wall clock that is set", (backend) => {
  let place: Place;
  let clock: ManualClock;
  let store: Store;
  const open = (): Promise<Store> => (backend === "a file" ? place.open({ clock }) : openStore("memory:", { clock }));
  beforeEach(async () => {
    place = placeForFile();
    clock = new ManualClock();
    store = await open();
  });
  afterEach(async () => {
    await store.close();
    await place.close();
  });

  async function sleeping(timer: { delayMs: number; until?: number }): Promise<number> {
    const run = await heldRun(store);
    const data = { pos: 0, purpose: "sleep", ...timer } as const;
    await store.fenced.append(run.fence, { after: 1, records: [{ kind: "timer.set", data }] });
    return run.fence.journal;
  }
  const due = async (): Promise<number> => (await store.read.dueTimers(10, tenant)).length;
  const timersIn = async () => (await store.read.agenda(tenant)).find(({ reactor }) => reactor === "timers")?.dueInMs;

  it.each([hour, -hour])("by %i ms changes nothing for a sleep of 12 seconds", async (step) => {
    const run = await sleeping({ delayMs: 12_000 });
    clock.stepWall(step);
    expect(await timersIn()).toBe(12_000);
    const listed = await store.read.timers(tenant, {});
    expect(listed[0]?.dueAt).toBe(Math.floor(clock.wall()) + 12_000); // by the new wall clock
    await clock.elapse(11_999);
    expect([await due(), await store.intake.fireTimer("acme", { run, pos: 0, purpose: "sleep" })]).toEqual([0, false]);
    await clock.elapse(1);
    expect([await due(), await store.intake.fireTimer("acme", { run, pos: 0, purpose: "sleep" })]).toEqual([1, true]);
  });

  it("a date follows the wall clock", async () => {
    await sleeping({ delayMs: 0, until: clock.wall() + hour });
    clock.stepWall(hour - 1);
    expect([await due(), await timersIn()]).toEqual([0, 1]);
    clock.stepWall(1);
    expect(await due()).toBe(1);
    clock.stepWall(-1);
    expect(await due()).toBe(0);
  });

  it("the time in which the machine is suspended counts for its runs", async () => {
    await sleeping({ delayMs: 12_000 });
    clock.suspend(12_000);
    expect(await due()).toBe(1);
  });

  it("the send window uses the same clock", async () => {
    const run = await begin(store);
    await run.write(intent(0), dispatched(0, { attempt: 1, sendWithinMs: 5_000 }));
    clock.stepWall(hour);
    expect((await run.effect(0)).sendUntil! - Math.floor(clock.wall())).toBe(5_000);
  });
});

describe("SQLite: a sleeping run", () => {
  it("wakes up after its twelve seconds, whatever the wall clock shows", async () => {
    const place = placeForFile();
    const clock = new ManualClock();
    const store = await place.open({ clock });
    const nap = workflow("nap", async (tape) => {
      await tape.sleep("12s");
      return "awake";
    });
    const app = await Tape.open({ store, clock, runner: createRunner({ workflows: [nap] }), leaseTtl: "60s" });
    const ended: string[] = [];
    for (const [id, step] of [
      ["forward", hour],
      ["back", -2 * hour],
    ] as const) {
      void (await app.start(nap, undefined, { id })).result().then(() => ended.push(id));
      await clock.elapse(100);
      clock.stepWall(step);
      await clock.elapse(11_000);
      expect(ended).not.toContain(id);
      await clock.elapse(6_000);
      expect(ended).toContain(id);
    }
    const closing = app.close();
    await clock.elapse(60_000);
    await closing;
    await place.close();
  });
});

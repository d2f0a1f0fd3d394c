import { describe, expect, it } from "vitest";
import { workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { settled } from "../../testkit/clock.ts";
import { type Process, type Stage, stage, tenant } from "./stage.ts";

/** Delays one call of the store: `met` resolves when the store has returned its result, `go` passes it on. */
function held(): { pass<T>(result: Promise<T>): Promise<T>; readonly met: Promise<void>; go(): void; armed: boolean } {
  let meet = (): void => {};
  let go = (): void => {};
  const met = new Promise<void>((resolve) => {
    meet = resolve;
  });
  const going = new Promise<void>((resolve) => {
    go = resolve;
  });
  const hold = {
    met,
    go,
    armed: false,
    async pass<T>(result: Promise<T>): Promise<T> {
      const value = await result;
      if (!hold.armed) return value;
      hold.armed = false;
      meet();
      await going;
      return value;
    },
  };
  return hold;
}

const fire = async (s: Stage): Promise<number> => {
  const due = await s.store.read.dueTimers(10, tenant);
  for (const timer of due) await s.store.intake.fireTimer(tenant, timer);
  return due.length;
};

async function parked(s: Stage, p: Process, id: string): Promise<void> {
  for (let k = 0; k < 20 && (await s.run(id)).status !== "WAITING"; k++) await settled(5);
  expect([(await s.run(id)).status, p.worker.driving]).toEqual(["WAITING", 0]);
}

/** At once, or over the wire within a second; a lost wake hint would cost two. */
async function awakeSoon(s: Stage, id: string): Promise<void> {
  for (let k = 0; k < 20 && (await s.run(id)).status !== "COMPLETED"; k++) {
    await settled(20);
    await s.clock.elapse(50);
  }
  await settled(20);
  expect((await s.run(id)).status).toBe("COMPLETED");
}

describe("a preloaded run whose timer another process fires", () => {
  const naps = workflow("naps", async (tape) => {
    await tape.sleep(15);
    return "awake";
  });

  it("between the claim and its result resumes at once", async () => {
    const s = await stage();
    const hold = held();
    const store: Store = {
      ...s.store,
      claim: { ...s.store.claim, find: (request) => hold.pass(s.store.claim.find(request)) },
    };
    const p = s.process([naps], { store });
    const id = await p.start(naps);
    await parked(s, p, id);
    hold.armed = true;
    const finding = p.worker.poll(10);
    await hold.met;
    await s.clock.elapse(20);
    expect(await fire(s)).toBe(1);
    hold.go();
    expect((await finding).found).toBe(1);
    await awakeSoon(s, id);
  });

  it("while its journal is read resumes at once", async () => {
    const s = await stage();
    const hold = held();
    const store: Store = {
      ...s.store,
      read: { ...s.store.read, journal: (...args) => hold.pass(s.store.read.journal(...args)) },
    };
    const p = s.process([naps], { store });
    const id = await p.start(naps);
    await parked(s, p, id);
    hold.armed = true;
    expect((await p.worker.poll(10)).found).toBe(1);
    await hold.met;
    await s.clock.elapse(20);
    expect(await fire(s)).toBe(1);
    hold.go();
    await awakeSoon(s, id);
  });

  it("while it is replayed resumes at once", async () => {
    const s = await stage();
    let drives = 0;
    const gates: (() => void)[] = [];
    const slowly = workflow("slowly", async (tape) => {
      if (++drives > 1) await new Promise<void>((resolve) => gates.push(resolve)); // not an operation
      await tape.step("first", () => 1);
      await tape.sleep(15);
      return "awake";
    });
    const p = s.process([slowly]);
    const id = await p.start(slowly);
    await parked(s, p, id);
    expect((await p.worker.poll(10)).found).toBe(1);
    await settled(20);
    expect(gates).toHaveLength(1);
    await s.clock.elapse(20);
    expect(await fire(s)).toBe(1);
    await settled(20);
    gates[0]!();
    await awakeSoon(s, id);
  });
});

import { describe, expect, it } from "vitest";
import { Slots } from "../../../src/store/statement-slots.ts";
import { ManualClock } from "../../../testkit/clock.ts";

const [acme, globex] = ["acme", "globex"];
const slotsOf = (clock: ManualClock, slots: number, waiting: number) =>
  new Slots({ clock, slots, waiting, waitMs: 1_000 });

/** Whether it was granted, rejected or neither, after everything that is due has happened. */
async function stateOf(taken: Promise<void>): Promise<unknown> {
  const open = Promise.resolve("waits");
  return Promise.race([
    taken.then(
      () => "granted",
      (error: unknown) => error,
    ),
    open.then(() => new Promise((later) => setImmediate(() => later("waits")))),
  ]);
}

describe("slots of the pool", () => {
  it("are granted to one tenant in order of arrival, and to no other statement in between", async () => {
    const slots = slotsOf(new ManualClock(), 1, 10);
    await slots.take(acme);
    const order: number[] = [];
    const taken = [1, 2, 3].map((k) => slots.take(acme).then(() => order.push(k)));
    for (const slot of taken) {
      slots.give(acme);
      await slot;
    }
    expect(order).toEqual([1, 2, 3]);
    slots.give(acme);
    await slots.take(acme);
    expect(slots.waiting).toBe(0);
  });

  it("are granted to tenants in turn: behind a flood, another tenant waits for one statement only", async () => {
    const slots = slotsOf(new ManualClock(), 1, 1_000);
    await slots.take(acme);
    const order: string[] = [];
    const take = async (tenant: string | undefined, name: string) => {
      await slots.take(tenant);
      order.push(name);
      slots.give(tenant);
    };
    const flood = Array.from({ length: 500 }, (_, k) => take(acme, `flood ${k}`));
    const others = [take(globex, "first"), take(globex, "second"), take(undefined, "the store's own")];
    slots.give(acme);
    await Promise.all([...flood, ...others]);
    expect(order.slice(0, 6)).toEqual(["flood 0", "first", "the store's own", "flood 1", "second", "flood 2"]);
    expect(order.slice(6)).toEqual(Array.from({ length: 497 }, (_, k) => `flood ${k + 3}`));
  });

  it("reject a flood that fills the queue, but still admit a tenant with few waiting", async () => {
    const slots = slotsOf(new ManualClock(), 1, 80);
    await slots.take(acme);
    const take = (tenant: string) => slots.take(tenant).then(() => slots.give(tenant));
    const waiting = Array.from({ length: 80 }, () => take(acme));
    await expect(slots.take(acme)).rejects.toMatchObject({ code: "TAPE_OVERLOADED" });
    waiting.push(...Array.from({ length: 10 }, () => take(globex)));
    await expect(slots.take(globex)).rejects.toMatchObject({ code: "TAPE_OVERLOADED" });
    slots.give(acme);
    await Promise.all(waiting);
  });

  it("the limit on waiting holds for each, even if others were granted a slot first", async () => {
    const clock = new ManualClock();
    const slots = slotsOf(clock, 1, 10);
    await slots.take(acme);
    const flood = [slots.take(acme), slots.take(acme), slots.take(acme)];
    for (const slot of flood) slot.catch(() => {});
    await clock.elapse(500);
    const other = slots.take(globex);
    const later = slots.take(acme);
    later.catch(() => {});
    slots.give(acme);
    slots.give(acme); // the first of the flood, then the other tenant, which came last
    await Promise.all([flood[0], other]);
    expect(slots.waiting).toBe(3);
    await clock.elapse(500);
    expect(await Promise.all(flood.slice(1).map(stateOf))).toEqual([expect.any(Error), expect.any(Error)]);
    expect(await stateOf(later)).toBe("waits");
    await clock.elapse(500);
    expect(await stateOf(later)).toBeInstanceOf(Error);
    expect(slots.waiting).toBe(0);
    slots.give(globex);
    await slots.take(globex);
  });

  it("a tenant leaves one slot to others, or half of them if there are others; those stay free", async () => {
    const clock = new ManualClock();
    const slots = slotsOf(clock, 8, 100);
    const freeFor = (tenant: string | undefined): number => {
      let taken = 0;
      while (slots.takeFree(tenant)) taken++;
      return taken;
    };
    expect(freeFor(acme)).toBe(7);
    expect(freeFor(globex)).toBe(1);
    for (let k = 0; k < 7; k++) slots.give(acme);
    expect(freeFor(acme)).toBe(4);
    expect(freeFor(undefined)).toBe(3);
    for (let k = 0; k < 3; k++) slots.give(undefined);
    await clock.elapse(1_000);
    expect(freeFor(acme)).toBe(3); // no other tenant came within a second
  });

  it("a tenant at its share is granted a slot when it releases one, or when it is alone again", async () => {
    const clock = new ManualClock();
    const slots = new Slots({ clock, slots: 4, waiting: 10, waitMs: 5_000 });
    await slots.take(globex);
    slots.give(globex);
    await Promise.all([slots.take(acme), slots.take(acme)]);
    const waiting = Array.from({ length: 4 }, () => slots.take(acme));
    expect(await Promise.all(waiting.map(stateOf))).toEqual(["waits", "waits", "waits", "waits"]);
    slots.give(acme);
    expect(await Promise.all(waiting.map(stateOf))).toEqual(["granted", "waits", "waits", "waits"]);
    await clock.elapse(1_000);
    slots.give(acme);
    expect(await Promise.all(waiting.map(stateOf))).toEqual(["granted", "granted", "granted", "waits"]);
    slots.give(acme);
    await Promise.all(waiting);
  });

  it("the queue is bounded, but a caller that lost its connection and must check may still join", async () => {
    const slots = slotsOf(new ManualClock(), 1, 2);
    await slots.take(acme);
    const waiting = [slots.take(acme), slots.take(acme)];
    await expect(slots.take(acme)).rejects.toMatchObject({ code: "TAPE_OVERLOADED" });
    waiting.push(slots.take(acme, true));
    expect(slots.waiting).toBe(3);
    for (const slot of waiting) {
      slots.give(acme);
      await slot;
    }
  });

  it("no caller waits longer than the limit, and later callers wait as long", async () => {
    const clock = new ManualClock();
    const slots = slotsOf(clock, 1, 10);
    await slots.take(acme);
    const first = slots.take(acme);
    first.catch(() => {});
    await clock.elapse(600);
    const second = slots.take(acme);
    await clock.elapse(400);
    expect(await stateOf(first)).toBeInstanceOf(Error);
    expect(await stateOf(second)).toBe("waits");
    slots.give(acme);
    expect(await stateOf(second)).toBe("granted");
    const third = slots.take(acme);
    third.catch(() => {});
    await clock.elapse(1_000);
    expect(await stateOf(third)).toBeInstanceOf(Error);
    slots.give(acme);
    await slots.take(acme);
  });

  it("closing rejects waiting and new callers", async () => {
    const slots = slotsOf(new ManualClock(), 1, 10);
    await slots.take(acme);
    const waiting = slots.take(acme);
    slots.close();
    await expect(waiting).rejects.toMatchObject({ code: "TAPE_STORE_CLOSED" });
    await expect(slots.take(acme)).rejects.toMatchObject({ code: "TAPE_STORE_CLOSED" });
  });

  it("joining a long queue costs as much as joining a short one", async () => {
    const cost = async (waiters: number): Promise<number> => {
      const clock = new ManualClock();
      const slots = slotsOf(clock, 1, waiters);
      await slots.take(acme);
      const taken = Array.from({ length: waiters }, () => slots.take(acme).catch(() => {}));
      const startedAt = performance.now();
      for (let k = 0; k < waiters / 2; k++) slots.give(acme);
      await clock.elapse(1_000); // the other half times out
      const each = (performance.now() - startedAt) / waiters;
      await Promise.all(taken);
      return each;
    };
    await cost(5_000);
    const short = Math.min(await cost(500), await cost(500), await cost(500));
    const long = Math.min(await cost(30_000), await cost(30_000));
    expect(long / short).toBeLessThan(15); // quadratic: sixty
  });
});

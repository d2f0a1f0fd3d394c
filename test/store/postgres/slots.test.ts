import { describe, expect, it } from "vitest";
import { Slots } from "../../../src/store/postgres/slots.ts";
import { ManualClock } from "../../../src/testing/clock.ts";

const slotsOf = (clock: ManualClock, slots: number, waiting: number) =>
  new Slots({ clock, slots, waiting, waitMs: 1_000 });

/** Whether it was granted, refused or neither, after everything that is due has happened. */
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
  it("are granted in order of arrival, and to nobody else in between", async () => {
    const slots = slotsOf(new ManualClock(), 1, 10);
    await slots.take();
    const order: number[] = [];
    const taken = [1, 2, 3].map((k) => slots.take().then(() => order.push(k)));
    for (const one of taken) {
      slots.give();
      await one;
    }
    expect(order).toEqual([1, 2, 3]);
    slots.give();
    await slots.take();
    expect(slots.waiting).toBe(0);
  });

  it("the line has a bound; who lost a connection and must ask what happened may join it all the same", async () => {
    const slots = slotsOf(new ManualClock(), 1, 2);
    await slots.take();
    const waiting = [slots.take(), slots.take()];
    await expect(slots.take()).rejects.toMatchObject({ code: "TAPE_OVERLOADED" });
    waiting.push(slots.take(true));
    expect(slots.waiting).toBe(3);
    for (const one of waiting) {
      slots.give();
      await one;
    }
  });

  it("nobody waits for longer than the bound, and who comes later waits as long", async () => {
    const clock = new ManualClock();
    const slots = slotsOf(clock, 1, 10);
    await slots.take();
    const first = slots.take();
    first.catch(() => {});
    await clock.elapse(600);
    const second = slots.take();
    await clock.elapse(400);
    expect(await stateOf(first)).toBeInstanceOf(Error);
    expect(await stateOf(second)).toBe("waits");
    slots.give();
    expect(await stateOf(second)).toBe("granted");
    const third = slots.take();
    third.catch(() => {});
    await clock.elapse(1_000);
    expect(await stateOf(third)).toBeInstanceOf(Error);
    slots.give();
    await slots.take();
  });

  it("closing refuses those who wait and those who come", async () => {
    const slots = slotsOf(new ManualClock(), 1, 10);
    await slots.take();
    const waiting = slots.take();
    slots.close();
    await expect(waiting).rejects.toMatchObject({ code: "TAPE_STORE_CLOSED" });
    await expect(slots.take()).rejects.toMatchObject({ code: "TAPE_STORE_CLOSED" });
  });

  it("a long line costs each one as much as a short one", async () => {
    const cost = async (waiters: number): Promise<number> => {
      const clock = new ManualClock();
      const slots = slotsOf(clock, 1, waiters);
      await slots.take();
      const taken = Array.from({ length: waiters }, () => slots.take().catch(() => {}));
      const begun = performance.now();
      for (let k = 0; k < waiters / 2; k++) slots.give();
      await clock.elapse(1_000); // the other half gives up
      const each = (performance.now() - begun) / waiters;
      await Promise.all(taken);
      return each;
    };
    await cost(5_000);
    const short = Math.min(await cost(500), await cost(500), await cost(500));
    const long = Math.min(await cost(30_000), await cost(30_000));
    expect(long / short).toBeLessThan(15); // quadratic: sixty
  });
});

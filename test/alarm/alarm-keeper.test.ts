import { describe, expect, it } from "vitest";
import { AlarmKeeper } from "../../src/alarm/alarm-keeper.ts";
import { type Alarm, dueAlarm, nextBucket } from "../../src/alarm/alarms.ts";
import { armedStore } from "../../src/alarm/armed-store.ts";
import type { Log } from "../../src/base/log.ts";
import { openStore } from "../../src/host/open-store.ts";
import { acquired, heldRun, record, request, spec, step, tenant } from "../../testkit/conformance/frame.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";

const boundMs = 5_000;

/** An alarm service that stores every alarm, unless a test makes it fail or wait. */
class Service {
  readonly furthestMs = 30 * 86_400_000;
  readonly stored: (Alarm & { readonly at: number })[] = [];
  answer: () => Promise<void> = async () => {};
  readonly #time: VirtualTime;

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  async set(alarm: Alarm): Promise<void> {
    const at = this.#time.wall() + alarm.inMs;
    await this.answer();
    this.stored.push({ ...alarm, at });
  }

  get aheadMs(): number {
    return Math.max(...this.stored.map(({ at }) => at)) - this.#time.wall();
  }
}

function stage() {
  const time = new VirtualTime();
  const alarms = new Service(time);
  const logged: string[] = [];
  const log: Log = (_level, event) => void logged.push(event);
  const keeper = new AlarmKeeper({ alarms, tenant, clock: time, log, transactionBoundMs: boundMs });
  return { time, alarms, keeper, logged };
}

describe("moments of alarms", () => {
  it("a bucket is between two and four bounds ahead, and named by its moment", () => {
    for (let now = 1_700_000_000_000; now < 1_700_000_030_000; now += 137) {
      const { at, inMs, name } = nextBucket(now, boundMs);
      expect(inMs).toBeGreaterThanOrEqual(2 * boundMs);
      expect(inMs).toBeLessThan(4 * boundMs);
      expect(name).toBe(`b10000-${at / 10_000}`);
    }
    expect(nextBucket(1_700_000_000_001, boundMs).name).toBe(nextBucket(1_700_000_009_999, boundMs).name);
  });

  it("an alarm for something due is never early, at most half a second late, and within the service's reach", () => {
    for (const inMs of [0, 1, 499, 500, 12_345, 86_400_000]) {
      const alarm = dueAlarm(1_700_000_000_123, inMs, 30 * 86_400_000);
      expect(alarm.inMs).toBeGreaterThanOrEqual(inMs);
      expect(alarm.inMs).toBeLessThan(inMs + 500);
    }
    const far = [0, 1, 60_000].map((ms) => dueAlarm(1_700_000_000_123 + ms, 1e12, 30 * 86_400_000));
    expect(Math.max(...far.map(({ inMs }) => inMs))).toBeLessThanOrEqual(30 * 86_400_000);
    expect(new Set(far.map(({ name }) => name)).size).toBe(1);
  });
});

describe("the alarm keeper", () => {
  it("the first write after a pause waits for its alarm, and later ones need none", async () => {
    const { time, alarms, keeper } = stage();
    let stored = -1;
    await time.during(
      keeper.cover(async () => {
        stored = alarms.stored.length;
      }),
    );
    expect(stored).toBe(1);
    for (let k = 0; k < 50; k++) await time.during(keeper.cover(async () => {}));
    expect(alarms.stored.length).toBeLessThanOrEqual(2); // the beat may have set the next one
    await time.elapse(60_000);
    const before = alarms.stored.length;
    await time.during(keeper.cover(async () => {}));
    expect(alarms.stored.length).toBeGreaterThan(before);
  });

  it("two processes that write in one interval set one alarm by name", async () => {
    const { time, alarms, keeper } = stage();
    const other = new AlarmKeeper({ alarms, tenant, clock: time, log: () => {}, transactionBoundMs: boundMs });
    await time.during(Promise.all([keeper.cover(async () => {}), other.cover(async () => {})]));
    expect(new Set(alarms.stored.map(({ name }) => name)).size).toBeLessThan(alarms.stored.length);
  });

  it("without an alarm nothing is written, and the error has its cause", async () => {
    const { time, alarms, keeper } = stage();
    alarms.answer = () => Promise.reject(new Error("queue not found"));
    let written = false;
    const write = keeper.cover(async () => {
      written = true;
    });
    const message = expect.stringContaining("queue not found");
    await expect(time.during(write)).rejects.toMatchObject({ code: "TAPE_UNARMED", message });
    expect(written).toBe(false);
  });

  it("a service that does not respond refuses the write after one bound", async () => {
    const { time, alarms, keeper } = stage();
    alarms.answer = () => new Promise(() => {});
    const from = time.now;
    await expect(time.during(keeper.cover(async () => {}))).rejects.toMatchObject({ code: "TAPE_UNARMED" });
    expect(time.now - from).toBe(boundMs);
  });

  it("a response that comes late does not count: the next alarm is set", async () => {
    const { time, alarms, keeper } = stage();
    alarms.answer = () => time.sleep(4_900);
    await time.during(
      keeper.cover(async () => {
        expect(alarms.aheadMs).toBeGreaterThanOrEqual(2 * boundMs);
      }),
    );
    expect(alarms.stored.length).toBeGreaterThanOrEqual(1);
  });

  it("while a write is under way an alarm stays at least two bounds ahead", async () => {
    const { time, alarms, keeper } = stage();
    const write = time.during(keeper.cover(() => time.sleep(90_000)));
    const ahead: number[] = [];
    for (let k = 1; k < 90; k++) time.after(k * 1_000, () => ahead.push(alarms.aheadMs));
    await write;
    expect(ahead.length).toBe(89);
    expect(Math.min(...ahead)).toBeGreaterThanOrEqual(2 * boundMs);
    expect(alarms.stored.length).toBeLessThanOrEqual(11); // one in ten seconds
  });

  it("a beat that fails is logged and repeated, and the write ends with an alarm ahead", async () => {
    const { time, alarms, keeper, logged } = stage();
    const write = keeper.cover(() => time.sleep(60_000));
    time.after(1_000, () => {
      alarms.answer = () => Promise.reject(new Error("503"));
    });
    time.after(40_000, () => {
      alarms.answer = async () => {};
    });
    await time.during(write);
    expect(logged).toContain("alarm.beat_failed");
    expect(alarms.aheadMs).toBeGreaterThanOrEqual(boundMs);
  });

  it("a process that stood still in a write sets another alarm before it reports the result", async () => {
    const { time, alarms, keeper } = stage();
    await time.during(
      keeper.cover(async () => {
        time.jump(120_000);
      }),
    );
    expect(alarms.aheadMs).toBeGreaterThanOrEqual(boundMs);
  });

  it("after a silence nothing is set: an idle process has no beat", async () => {
    const { time, alarms, keeper } = stage();
    await time.during(keeper.cover(async () => {}));
    const before = alarms.stored.length;
    await time.elapse(3_600_000);
    expect(alarms.stored.length).toBe(before);
  });
});

describe("the armed store", () => {
  it("creations, claims, timers and ends of terms are armed; steps, values and named leases are not", async () => {
    const { time, alarms, keeper } = stage();
    const inner = await openStore("memory:", { clock: time });
    const store = armedStore(inner, keeper);
    const sets = async (work: () => Promise<unknown>): Promise<boolean> => {
      await time.elapse(60_000);
      const before = alarms.stored.length;
      await time.during(work());
      return alarms.stored.length > before;
    };
    const long = { owner: "o", label: "l", reactor: "agent", ttlMs: 3_600_000 };
    const run = await time.during(heldRun(store, {}, long));
    const append = (after: number, ...records: ReturnType<typeof step>[]) =>
      store.fenced.append(run.fence, { after, records });
    expect(await sets(() => append(1, step(0)))).toBe(false);
    expect(await sets(() => append(2, record("timer.set", { pos: 1, purpose: "sleep", delayMs: 5 })))).toBe(true);
    expect(await sets(() => store.intake.putValue(tenant, "k", 1, "unconditional"))).toBe(false);
    expect(await sets(() => acquired(store, request({ name: "n" })))).toBe(false);
    expect(await sets(() => store.intake.createRuns(tenant, [spec()]))).toBe(true);
    expect(await sets(() => store.once({ tenant, key: "k", hash: "h" }).cancel(tenant, run.id, { reason: "r" }))).toBe(
      true,
    );
    expect(await sets(() => store.read.runs(tenant))).toBe(false);
    await store.close();
  });

  it("a refused write has changed nothing", async () => {
    const { time, alarms, keeper } = stage();
    const inner = await openStore("memory:", { clock: time });
    alarms.answer = () => Promise.reject(new Error("403"));
    const created = armedStore(inner, keeper).intake.createRuns(tenant, [spec()]);
    await expect(time.during(created)).rejects.toMatchObject({ code: "TAPE_UNARMED" });
    expect(await time.during(inner.read.runs(tenant))).toHaveLength(0);
    await inner.close();
  });
});

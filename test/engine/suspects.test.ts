import { describe, expect, it } from "vitest";
import type { TapeContext } from "../../src/sdk/context.ts";
import { type AnyWorkflow, workflow } from "../../src/sdk/workflow.ts";
import { settled } from "../../testkit/clock.ts";
import { type Process, type Stage, stage, tenant, ttlMs } from "./stage.ts";

const flow = (name: string, run: (tape: TapeContext, input: never) => unknown): AnyWorkflow =>
  workflow(name, run as never) as unknown as AnyWorkflow;
const create = (s: Stage, name: string, count: number) =>
  s.store.intake.createRuns(
    tenant,
    Array.from({ length: count }, (_, k) => ({ id: `${name}-${k}`, workflow: name, input: null })),
  );
const startReasonsOf = async (s: Stage, id: string) =>
  (await s.records(id)).flatMap((record) => (record.kind === "term.started" ? [record.data.reason] : []));

describe("the runs of a process that crashed", () => {
  it("are recovered several at a time, and only as many as are driven are claimed", async () => {
    const s = await stage();
    let bodies = 0;
    const slow = flow("slow", async (tape) => {
      await tape.step("first", () => 1);
      await tape.step("slow", () => {
        bodies++;
        return s.clock.sleep(60_000);
      });
    });
    await create(s, "slow", 40);
    const dead = s.process([slow]);
    void dead.worker.runOnce(100);
    await settled(60);
    expect(bodies).toBe(40);
    dead.crash();
    await s.clock.elapse(ttlMs + 1);
    bodies = 0;
    const [a, b] = [s.process([slow]), s.process([slow])];
    const found = [await a.worker.poll(100), await a.worker.poll(100), await b.worker.poll(100)];
    await settled(60);
    expect(found.map((round) => round.found)).toEqual([16, 0, 16]);
    expect(bodies).toBe(32);
    const untouched = await Promise.all(Array.from({ length: 40 }, (_, k) => startReasonsOf(s, `slow-${k}`)));
    expect(untouched.filter((reasons) => reasons.length === 1)).toHaveLength(8);
    await s.clock.elapse(5_000); // those that survive are cleared, so that others may start beside them
    expect((await a.worker.poll(100)).found).toBe(8);
    const ended = () => s.store.read.runs(tenant, { status: ["COMPLETED"], limit: 100 });
    await a.until(async () => (await ended()).length === 40);
    expect(bodies).toBe(40);
  });

  it("with one killer among many cause a bounded number of crashes, then all others end", async () => {
    const s = await stage();
    let current: Process | undefined;
    const poison = flow("poison", (tape) =>
      tape.step("kill", () => {
        current!.crash();
        return new Promise(() => {});
      }),
    );
    const innocent = flow("innocent", async (tape) => {
      await tape.step("first", () => settled(3));
      return tape.step("second", () => "ok");
    });
    await create(s, "innocent", 60);
    await create(s, "poison", 1);
    let lives = 0;
    for (; lives < 40; lives++) {
      const p = s.process([poison, innocent]);
      let dead = false;
      const crash = p.crash.bind(p);
      current = {
        ...p,
        crash: () => {
          dead = true;
          crash();
        },
      };
      for (let k = 0; k < 40 && !dead; k++) {
        void p.worker.poll(100);
        await settled(20);
        if (!dead) await s.clock.elapse(200);
      }
      if (!dead) {
        await p.worker.drain(0);
        p.keeper.close();
        break;
      }
      await s.clock.elapse(ttlMs + 1);
    }
    expect((await s.run("poison-0")).status).toBe("STUCK");
    expect(lives).toBeLessThanOrEqual(8);
    expect(await s.store.read.runs(tenant, { status: ["COMPLETED"], limit: 100 })).toHaveLength(60);
  });
});

it("a process that lost its leases under load does not suspect its own runs", async () => {
  const s = await stage();
  const waits: (() => void)[] = [];
  const stay = flow("stay", (tape) => tape.step("body", () => new Promise<void>((resolve) => waits.push(resolve))));
  await create(s, "stay", 3);
  const p = s.process([stay]);
  for (let k = 0; k < 8; k++) {
    void p.worker.poll(100);
    await settled(30);
    s.clock.stall(ttlMs + 1); // no timer fires meanwhile, so there is no heartbeat
    await settled(5);
  }
  expect((await startReasonsOf(s, "stay-0")).filter((reason) => reason === "recovery").length).toBeGreaterThanOrEqual(
    7,
  );
  expect(p.worker.capacity).toBeGreaterThan(0);
  expect(await s.kinds("stay-0")).not.toContain("run.suspected");
  expect((await s.run("stay-0")).status).not.toBe("STUCK");
  // They do not count when another process takes over: it is the first crash, not the eighth.
  p.crash();
  await s.clock.elapse(ttlMs + 1);
  const successor = s.process([stay]);
  void successor.worker.poll(100);
  await settled(30);
  expect([successor.worker.driving, successor.worker.capacity > 0]).toEqual([3, true]);
  expect(await s.kinds("stay-0")).not.toContain("run.suspected");
});

describe("twelve runs with long steps whose process crashed twice", () => {
  async function crashed(times = 2) {
    const s = await stage();
    let bodies = 0;
    const long = flow("long", (tape) =>
      tape.step("body", () => {
        bodies++;
        return s.clock.sleep(60_000);
      }),
    );
    const other = flow("other", (tape) => tape.step("quick", () => "done"));
    await create(s, "long", 12);
    for (let k = 0; k < times; k++) {
      const p = s.process([long, other]);
      for (let poll = 0; poll < 30 && p.worker.driving < 12; poll++) {
        await p.worker.poll(100);
        await settled(30);
        await s.clock.elapse(200);
      }
      expect(p.worker.driving).toBe(12);
      p.crash();
      await s.clock.elapse(ttlMs + 1);
    }
    bodies = 0;
    return { s, flows: [long, other], other, bodies: () => bodies };
  }

  it.each([2, 3])(
    "are all driven again within two lease TTLs, and a new one starts at once (%s crashes)",
    async (times) => {
      const { s, flows, other, bodies } = await crashed(times);
      const p = s.process(flows, { concurrency: 20 });
      let waited = 0;
      await p.worker.poll(100);
      await settled(30);
      const id = await p.start(other);
      await settled(30);
      expect((await s.run(id)).status).toBe("COMPLETED");
      for (; bodies() < 12 && waited < 10 * ttlMs; waited += 500) {
        await s.clock.elapse(500);
        await p.worker.poll(100);
        await settled(30);
        const fresh = await p.start(other);
        await settled(20);
        expect((await s.run(fresh)).status, `after ${waited} ms`).toBe("COMPLETED");
      }
      expect(bodies()).toBe(12);
      expect(waited).toBeLessThanOrEqual(2 * ttlMs);
      expect(await s.store.read.runs(tenant, { status: ["STUCK"] })).toEqual([]);
    },
  );

  it("with one killer among them: it is found, and the others complete", async () => {
    const s = await stage();
    let current: Process | undefined;
    const long = flow("long", (tape) => tape.step("body", () => s.clock.sleep(60_000)));
    const poison = flow("poison", (tape) =>
      tape.step("kill", () => {
        current!.crash();
        return new Promise(() => {});
      }),
    );
    await create(s, "long", 11);
    await create(s, "poison", 1);
    let lives = 0;
    for (; lives < 30 && (await s.run("poison-0")).status !== "STUCK"; lives++) {
      const p = s.process([long, poison]);
      let dead = false;
      current = {
        ...p,
        crash: () => {
          dead = true;
          p.crash();
        },
      };
      for (let poll = 0; poll < 130 && !dead && (await s.run("poison-0")).status !== "STUCK"; poll++) {
        void p.worker.poll(100);
        await settled(20);
        if (!dead) await s.clock.elapse(500);
      }
      p.crash();
      await s.clock.elapse(ttlMs + 1);
    }
    expect((await s.run("poison-0")).status).toBe("STUCK");
    expect(lives).toBeLessThanOrEqual(10);
    const last = s.process([long, poison]);
    for (let k = 0; k < 11; k++) expect((await last.over(`long-${k}`)).status).toBe("COMPLETED");
  });
});

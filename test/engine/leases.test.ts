import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { ManualClock, settled } from "../../testkit/clock.ts";
import { type Process, type Stage, stage, tenant, ttlMs } from "./stage.ts";

const go = gate("go");
const flow = (name: string, run: (tape: TapeContext, input: never) => unknown): AnyWorkflow =>
  workflow(name, run as never) as unknown as AnyWorkflow;

function takeover(s: Stage, run: string): Promise<unknown> {
  const claimant = { owner: "operator", label: "operator", reactor: "recovery", ttlMs };
  const manual = { expect: "any", reason: "manual", by: "ada", auditReason: "reassigned" } as const;
  return s.store.claim.acquire(tenant, { target: { run }, claimant, nonce: seededRandom(run).bits63(), ...manual });
}

describe("a lost lease", () => {
  it("[INV-17] after a stall the function stops at its next operation and writes nothing", async () => {
    const s = await stage();
    const calls: string[] = [];
    let release = (): void => {};
    const two = flow("two", async (tape) => {
      await tape.step("a", () => new Promise<void>((resolve) => (release = resolve)));
      calls.push("continued");
      await tape.step("b", () => void calls.push("b"));
    });
    const p = s.process([two]);
    const id = await p.start(two);
    await settled(5);
    s.clock.stall(ttlMs);
    release();
    await settled(20);
    expect(calls).toEqual([]);
    expect(await s.kinds(id)).toEqual(["run.created"]);
    expect([p.worker.driving, p.keeper.leases.length]).toEqual([0, 0]);
  });

  it("a stale completion starts no child and no outbox effect, and leaves no note", async () => {
    const s = await stage();
    let release = (): void => {};
    let stale = true;
    const outbox = effect("out", (_: null) => 1, { dispatch: "outbox", compensate: () => {} });
    const child = flow("child", () => 1);
    const parent = flow("parent", async (tape) => {
      await tape.step("work", () => (stale ? new Promise<void>((resolve) => (release = resolve)) : undefined));
      await Promise.all([tape.spawn(child as never, null as never), tape.effect(outbox.with(null))]);
    });
    const runner = createRunner({ workflows: [parent, child], effects: [outbox] });
    const one = s.process(runner);
    const top = flow("top", async (tape) => (await tape.spawn(parent as never, null as never)).result());
    const all = createRunner({ workflows: [parent, child, top], effects: [outbox] });
    const starter = s.process(all);
    const id = await starter.start(top);
    await settled(30);
    void one.worker.runOnce(10);
    await settled(20);
    await takeover(s, `${id}.0`);
    stale = false;
    const before = await s.records(`${id}.0`);
    release();
    await settled(40);
    expect(await s.records(`${id}.0`)).toEqual(before);
    expect(await s.store.read.run(tenant, `${id}.0.1`)).toBeUndefined();
    expect(await s.store.read.effects(tenant, { run: `${id}.0` })).toEqual([]);
    expect(await s.notes(id)).toEqual([]);
    await s.clock.elapse(ttlMs + 1);
    expect((await starter.over(id)).status).toBe("COMPLETED");
  });

  it("the tool call of a reassigned agent is rejected before the effect is sent", async () => {
    const s = await stage();
    const world: string[] = [];
    let release = (): void => {};
    let thinking = true;
    const tool = effect("tool", (_: null, fx) => void world.push(`${fx.key} under ${fx.token}`), {
      compensate: () => {},
    });
    const agent = flow("agent", async (tape) => {
      await tape.decide("think", () => (thinking ? new Promise<void>((resolve) => (release = resolve)) : undefined));
      await tape.effect(tool.with(null));
      return "done";
    });
    const runner = createRunner({ workflows: [agent], effects: [tool] });
    const old = s.process(runner);
    const id = await old.start(agent);
    await settled(10);
    await takeover(s, id);
    thinking = false;
    release();
    await settled(30);
    expect(world).toEqual([]);
    expect(old.worker.driving).toBe(0);
    await s.clock.elapse(ttlMs + 1);
    const view = await s.process(runner).over(id);
    expect([view.outcome, world]).toEqual(["done", [expect.stringMatching(/:1 under [3-9]$/)]]);
  });

  it("after one failed append the run is released soon, not after the TTL", async () => {
    const s = await stage();
    let fail = true;
    const broken = {
      ...s.store,
      fenced: {
        ...s.store.fenced,
        append: async (...args: Parameters<typeof s.store.fenced.append>) => {
          const result = await s.store.fenced.append(...args);
          if (fail && args[1].records[0]!.kind === "step.done") {
            fail = false;
            throw Object.assign(new Error("reset"), { code: "ECONNRESET" });
          }
          return result;
        },
      },
    };
    let calls = 0;
    const once = flow("once", (tape) => tape.step("a", () => ++calls));
    const p = s.process([once], { store: broken });
    const id = await p.start(once);
    await settled(20);
    await s.clock.elapse(1_001);
    await p.worker.runOnce(10);
    expect([(await s.run(id)).outcome, calls]).toEqual([1, 1]);
  });

  it("a run whose workflow this process does not have is left to others", async () => {
    const s = await stage();
    const known = flow("known", () => 1);
    await s.store.intake.createRuns(tenant, [{ id: "x", workflow: "known", input: null }]);
    const stranger = s.process([]);
    await stranger.worker.runOnce(10);
    expect((await s.run("x")).status).toBe("RUNNABLE");
    await s.clock.elapse(5_001);
    expect((await s.process([known]).over("x")).status).toBe("COMPLETED");
  });
});

it("1 000 parked runs hold no lease and no timer of the process", async () => {
  class CountingClock extends ManualClock {
    readonly pending = new Set<object>();
    override after(ms: number, fn: () => void): () => void {
      const mark = {};
      this.pending.add(mark);
      const cancel = super.after(ms, () => {
        this.pending.delete(mark);
        fn();
      });
      return () => {
        this.pending.delete(mark);
        cancel();
      };
    }
  }
  const clock = new CountingClock();
  const s = await stage({ clock });
  const wait = flow("wait", (tape) => Promise.all([tape.gate(go), tape.sleep("1h")]));
  const p = s.process([wait]);
  for (let k = 0; k < 1_000; k++) await p.start(wait);
  await p.until(() => p.worker.driving === 0);
  const runs = await s.store.read.runs(tenant, { status: ["WAITING"], limit: 1_000 });
  expect(runs).toHaveLength(1_000);
  expect(p.keeper.leases).toEqual([]);
  await clock.elapse(ttlMs); // the last check of the drives finds none and is not scheduled again
  expect(clock.pending.size).toBe(0);
});

describe("a run that crashes its process", () => {
  /** Drives due runs in a new process per round; it crashes when a body calls `die`. */
  async function lives(s: Stage, flows: readonly AnyWorkflow[], rounds: number): Promise<void> {
    for (let k = 0; k < rounds; k++) {
      const p = s.process(flows);
      current = p;
      void p.worker.runOnce(100);
      await settled(60);
      await s.clock.elapse(300); // suspects that were found together are queued
      await settled(60);
      p.crash();
      await s.clock.elapse(ttlMs + 1);
    }
  }
  let current: Process | undefined;
  const die = (): Promise<never> => {
    current!.crash();
    return new Promise(() => {});
  };

  it("is STUCK after five crashes alone; other runs of the process are not", async () => {
    const s = await stage();
    const poison = flow("poison", async (tape) => {
      await tape.step("fine", () => 1);
      await tape.step("kill", die);
    });
    const innocent = flow("innocent", async (tape) => {
      await tape.step("first", () => 1);
      await tape.step("slow", () => settled(30));
      return "ok";
    });
    const flows = [poison, innocent];
    const ids = ["i1", "i2", "i3"];
    const spec = (id: string, name: string) => ({ id, workflow: name, input: null });
    await s.store.intake.createRuns(tenant, [...ids.map((id) => spec(id, "innocent")), spec("p", "poison")]);
    await lives(s, flows, 11);
    const view = await s.run("p");
    expect(view.status).toBe("STUCK");
    const stuck = (await s.records("p")).find(({ kind }) => kind === "run.stuck")!;
    expect((stuck.data as { reason: string }).reason).toMatch(/crashed 5 times/);
    const suspected = (await s.records("p")).filter(({ kind }) => kind === "run.suspected").map(({ data }) => data);
    expect(suspected).toEqual([0, 1, 2, 3, 4].map((crashes) => ({ crashes })));
    for (const id of ids) expect([id, (await s.process(flows).over(id)).outcome]).toEqual([id, "ok"]);
  });

  it("by an idempotent effect counts, too: attempts are no progress", async () => {
    const s = await stage();
    const kill = effect("kill", die, { semantics: "idempotent" });
    const poison = flow("poison", (tape) => tape.effect(kill.with(null as never)));
    const flows = createRunner({ workflows: [poison], effects: [kill as never] });
    await s.store.intake.createRuns(tenant, [{ id: "p", workflow: "poison", input: null }]);
    for (let k = 0; k < 9; k++) {
      current = s.process(flows);
      void current.worker.runOnce(100);
      await settled(60);
      await s.clock.elapse(300);
      await settled(60);
      current.crash();
      await s.clock.elapse(ttlMs + 1);
    }
    expect((await s.run("p")).status).toBe("STUCK");
  });

  it("is tested alone after a recovery, while new runs start at once", async () => {
    const s = await stage();
    const stay = flow("stay", (tape) => tape.step("body", () => new Promise(() => {})));
    const other = flow("other", () => "done");
    await s.store.intake.createRuns(tenant, [{ id: "stay", workflow: "stay", input: null }]);
    await lives(s, [stay, other], 3);
    const p = s.process([stay, other]);
    void p.worker.runOnce(10);
    await settled(30);
    await s.clock.elapse(300);
    await settled(30);
    expect([p.worker.capacity > 0, (await s.kinds("stay")).at(-1)]).toEqual([true, "run.suspected"]);
    const id = await p.start(other);
    await settled(30);
    expect((await s.run(id)).outcome).toBe("done");
    p.crash();
  });

  it("blocks new runs for seconds during its last tests; if it survives, its count restarts", async () => {
    const s = await stage();
    const stay = flow("stay", (tape) => tape.step("body", () => new Promise(() => {})));
    const other = flow("other", () => "done");
    await s.store.intake.createRuns(tenant, [{ id: "stay", workflow: "stay", input: null }]);
    await lives(s, [stay, other], 6);
    const p = s.process([stay, other]);
    void p.worker.runOnce(10);
    await settled(30);
    await s.clock.elapse(300);
    await settled(30);
    expect(p.worker.capacity).toBe(0);
    const id = await p.start(other);
    await settled(30);
    expect((await s.run(id)).status).toBe("RUNNABLE");
    await s.clock.elapse(5_000);
    await settled(30);
    expect(p.worker.capacity).toBeGreaterThan(0);
    expect((await p.over(id)).outcome).toBe("done");
    expect((await s.records("stay")).at(-1)).toMatchObject({ kind: "run.suspected", data: { crashes: 0 } });
    p.crash();
  });

  it("never makes another run STUCK", async () => {
    const s = await stage();
    const long = flow("long", (tape) => tape.step("body", () => s.clock.sleep(120_000).then(() => "ok")));
    const killer = flow("killer", (tape) => tape.step("kill", die));
    await s.store.intake.createRuns(tenant, [{ id: "long", workflow: "long", input: null }]);
    for (let k = 0; k < 12; k++) {
      const p = s.process([long, killer]);
      current = p;
      void p.worker.runOnce(1);
      await settled(30);
      await s.clock.elapse(35_000); // its time alone is over by now
      await p.start(killer, null, { id: `killer ${k}` });
      await settled(30);
      await s.clock.elapse(ttlMs + 1);
    }
    expect(["RUNNING", "RUNNABLE"]).toContain((await s.run("long")).status);
    expect((await s.process([long]).over("long")).outcome).toBe("ok");
  });
});

it("a long journal logs a warning, then the run fails with TAPE_TOO_LARGE and is compensated", async () => {
  const s = await stage({ limits: { journalRecords: 60 } });
  const compensated: unknown[] = [];
  const book = effect("book", (n: number) => n, { compensate: (n) => void compensated.push(n) });
  const endless = flow("endless", async (tape) => {
    await tape.effect(book.with(1));
    for (let k = 0; ; k++) await tape.step(`s${k}`, () => k);
  });
  const p = s.process(createRunner({ workflows: [endless], effects: [book] }));
  const id = await p.start(endless);
  const view = await p.over(id);
  expect([view.status, (view.outcome as { code: string }).code]).toEqual(["COMPENSATED", "TAPE_TOO_LARGE"]);
  expect(compensated).toEqual([1]);
  expect(s.logged.filter(({ event }) => event === "run.journal_near_limit")).toHaveLength(1);
});

describe("drain", () => {
  it("claims nothing more, waits for drives, and releases those that do not finish", async () => {
    const s = await stage();
    let started = 0;
    const quick = flow("quick", (tape) => tape.step("a", () => s.clock.sleep(1_000).then(() => "done")));
    const long = flow("long", async (tape) => {
      await tape.step("first", () => 1);
      return tape.step("long", () => (++started === 1 ? new Promise(() => {}) : "second try"));
    });
    const one = s.process([quick, long]);
    const [a, b] = [await one.start(quick), await one.start(long)];
    await settled(10);
    const drained = one.worker.drain(5_000);
    expect(one.worker.capacity).toBe(0);
    const c = await one.start(quick);
    await s.clock.elapse(5_001);
    await drained;
    expect([(await s.run(a)).outcome, one.worker.driving, one.keeper.leases.length]).toEqual(["done", 0, 0]);
    const last = (await s.records(b)).at(-1)!;
    expect([last.kind, last.data]).toMatchObject(["term.ended", { reason: "drained", nextReactor: "recovery" }]);
    const two = s.process([quick, long]);
    expect((await two.worker.poll(10)).found).toBe(2); // at once, without waiting for a lease to expire
    expect((await two.over(b)).outcome).toBe("second try");
    expect((await two.over(c)).outcome).toBe("done");
  });
});

import { describe, expect, it } from "vitest";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { type AnyWorkflow, createRunner, type WorkflowOptions, workflow } from "../../src/sdk/workflow.ts";
import { settled } from "../../testkit/clock.ts";
import { type Process, type Stage, stage, tenant, ttlMs } from "./stage.ts";

const never = (): Promise<never> => new Promise(() => {});
const go = gate<string>("go");
const maxStallMs = 60_000;
/** Half a heartbeat. */
const passMs = 5_000;

function flow(
  run: (tape: TapeContext, input: never) => unknown,
  options: WorkflowOptions<unknown> = { maxStall: maxStallMs },
): AnyWorkflow {
  return workflow("flow", run as never, options) as unknown as AnyWorkflow;
}

/** Lets this much time pass, heartbeat by heartbeat, while the processes poll. */
async function pass(s: Stage, ms: number, ...processes: readonly Process[]): Promise<void> {
  for (let spent = 0; spent < ms; spent += passMs) {
    for (const p of processes) await p.reactors();
    await settled(3);
    await s.clock.elapse(passMs);
    await settled(3);
  }
  for (const p of processes) await p.reactors();
  await settled(20);
}

const reasons = async (s: Stage, id: string): Promise<string[]> =>
  (await s.store.read.terms(tenant, { run: id })).map(({ startReason }) => startReason);

describe("a run whose body never returns", () => {
  it("is taken from a process that renews but makes no progress, and the late write is refused", async () => {
    const s = await stage();
    let release = (_: string): void => {};
    let bodies = 0;
    const hangs = flow((tape) =>
      tape.step("import", () => (++bodies === 1 ? new Promise<string>((resolve) => (release = resolve)) : "second")),
    );
    const wedged = s.process([hangs]);
    const id = await wedged.start(hangs);
    const other = s.process([hangs]);
    await pass(s, maxStallMs - 5_000, other);
    expect([bodies, (await s.run(id)).status]).toEqual([1, "RUNNING"]);
    await pass(s, 5_000 + ttlMs / 3 + 5_000, other);
    expect([bodies, (await s.run(id)).outcome]).toEqual([2, "second"]);
    release("first");
    await settled(20);
    expect((await s.run(id)).outcome).toBe("second");
    expect((await s.records(id)).filter(({ kind }) => kind === "step.done")).toHaveLength(1);
    expect(await reasons(s, id)).toEqual(["start", "stalled"]);
    const lines = s.logged.filter(({ event }) => event === "run.stalled");
    expect(lines).toMatchObject([{ fields: { run: id, operation: 'step "import"', code: "TAPE_STALLED" } }]);
  });

  it("is not kept by signals that arrive meanwhile", async () => {
    const s = await stage();
    let bodies = 0;
    const hangs = flow((tape) => tape.step("import", () => (++bodies === 1 ? never() : "second")));
    const wedged = s.process([hangs]);
    const id = await wedged.start(hangs);
    for (let k = 0; k < 20 && bodies === 1; k++) {
      await s.store.intake.signal(tenant, id, { name: "go", value: k });
      await pass(s, 5_000, wedged);
    }
    expect(bodies).toBe(2);
  });

  it("keeps its lease while it writes, reports progress, or uses its time-out", async () => {
    const s = await stage();
    const mail = effect("mail", never, { semantics: "idempotent", timeout: "80s", retry: { attempts: 1 } });
    const busy = flow(async (tape) => {
      for (let k = 0; k < 2; k++) await tape.step(`write ${k}`, () => s.clock.sleep(maxStallMs - 10_000));
      await tape.step("report", async () => {
        for (let k = 0; k < 2; k++) {
          await s.clock.sleep(maxStallMs - 10_000);
          tape.progress(`page ${k}`);
        }
      });
      await tape.step("timed", () => s.clock.sleep(100_000), { timeout: "150s" });
      await tape.step("retried", ({ attempt }) => (attempt === 1 ? never() : 1), {
        timeout: "80s",
        retry: { attempts: 2, base: "1ms" },
      });
      return tape.attempt(mail.with(undefined as never)).catch(() => "in doubt");
    });
    const p = s.process(createRunner({ workflows: [busy], effects: [mail] }));
    const id = await p.start(busy);
    const inDoubt = () => s.store.read.effects(tenant, { run: id, status: ["UNKNOWN", "STUCK"] });
    for (let k = 0; (await inDoubt()).length === 0; k++) {
      expect(k).toBeLessThan(200);
      await s.clock.elapse(passMs);
      await settled(3);
    }
    expect(await reasons(s, id)).toEqual(expect.not.arrayContaining(["stalled", "recovery"]));
  });

  it("becomes STUCK after three stalls in a row, and names the step without a fourth call", async () => {
    const s = await stage();
    let bodies = 0;
    const hangs = true;
    const stuck = flow(async (tape) => {
      await tape.step("fine", () => 1);
      return tape.step("import", () => (++bodies && hangs ? never() : "done"));
    });
    const first = s.process([stuck]);
    const id = await first.start(stuck);
    const second = s.process([stuck]);
    await pass(s, 5 * maxStallMs, first, second);
    const run = await s.run(id);
    expect([run.status, bodies]).toEqual(["STUCK", 3]);
    const record = (await s.records(id)).find(({ kind }) => kind === "run.stuck");
    expect(record?.data).toMatchObject({ detail: { code: "TAPE_STALLED", operation: 'step "import"' } });
    expect(s.logged.filter(({ event }) => event === "run.stuck")).toHaveLength(1);
  });

  it("becomes STUCK in its first operation, too, and counts only stalls without progress", async () => {
    const s = await stage();
    let bodies = 0;
    const hangs = flow((tape) => tape.step("import", () => (++bodies > 0 ? never() : 1)));
    const p = s.process([hangs]);
    const id = await p.start(hangs);
    await pass(s, 5 * maxStallMs, p);
    expect([(await s.run(id)).status, bodies]).toEqual(["STUCK", 3]);
    let calls = 0;
    const slow = flow(async (tape) => {
      for (let k = 0; k < 3; k++) await tape.step(`page ${k}`, () => (++calls % 3 === 0 ? k : never()));
    });
    const again = await stage();
    const q = again.process([slow]);
    const other = await q.start(slow);
    await pass(again, 6 * (maxStallMs + ttlMs), q);
    expect([(await again.run(other)).status, calls]).toEqual(["COMPLETED", 9]);
  });

  it("gets the limit of newer code, of a parent, and of a start by name", async () => {
    const s = await stage();
    const child = workflow("child", (tape) => tape.gate(go), { maxStall: "2m" });
    const plain = workflow("parent", async (tape) => (await tape.spawn(child, undefined)).result());
    const p = s.process([plain, child] as unknown as AnyWorkflow[]);
    const id = await p.start(plain as unknown as AnyWorkflow);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    expect((await s.store.read.lease(tenant, { run: `${id}.0` }))?.maxStallMs).toBe(120_000);
    p.crash();
    const newer = workflow("child", (tape) => tape.gate(go), { maxStall: "3m" });
    await s.store.intake.signal(tenant, `${id}.0`, { name: "other", value: 1 });
    const q = s.process([plain, newer] as unknown as AnyWorkflow[]);
    const limit = async () => (await s.store.read.lease(tenant, { run: `${id}.0` }))?.maxStallMs;
    await q.until(async () => (await limit()) === 180_000);
    await q.until(async () => (await s.run(`${id}.0`)).status === "WAITING");
    await s.store.intake.signal(tenant, `${id}.0`, { name: "go", value: "on" });
    await q.over(id);
    expect((await s.kinds(`${id}.0`)).filter((kind) => kind === "run.limited")).toHaveLength(1);
  });

  it("refuses a maxStall that no heartbeat could meet", async () => {
    const s = await stage();
    const hasty = flow(() => 1, { maxStall: ttlMs / 3 });
    expect(() => s.process([hasty])).toThrow(expect.objectContaining({ code: "TAPE_BAD_TIMING" }));
  });
});

describe("a deadline", () => {
  it("cancels a run that takes longer, from its first term on", async () => {
    const s = await stage();
    const late = flow((tape) => tape.gate(go), { deadline: "2h" });
    const p = s.process([late]);
    const id = await p.start(late);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    await s.clock.elapse(7_190_000);
    await p.reactors();
    expect((await s.run(id)).status).toBe("WAITING");
    const run = await p.over(id);
    expect(run.status).toBe("CANCELLED");
    expect((await s.notes(id)).map(({ data }) => data)).toEqual([{ reason: "deadline", by: "timers", deadline: true }]);
    expect((await s.kinds(id)).filter((kind) => kind === "timer.set")).toHaveLength(1);
  });

  it("of the start applies instead of the workflow's, and a run that ends in time cancels it", async () => {
    const s = await stage();
    const quick = flow((tape) => tape.step("one", () => 1), { deadline: "2h" });
    const p = s.process([quick]);
    const id = await p.start(quick, null, { deadlineMs: 5_000 });
    expect((await p.over(id)).status).toBe("COMPLETED");
    expect(await s.store.read.timers(tenant, { run: id })).toMatchObject([
      { purpose: "deadline", status: "CANCELLED" },
    ]);
    const set = (await s.records(id)).find(({ kind }) => kind === "timer.set");
    expect(set?.data).toMatchObject({ purpose: "deadline", delayMs: 5_000 });
  });

  it("does not change positions: a run with one replays like a run without", async () => {
    const s = await stage();
    let bodies = 0;
    const two = flow(
      async (tape) => {
        await tape.step("one", () => ++bodies);
        await tape.gate(go);
        return tape.step("two", () => ++bodies);
      },
      { deadline: "2h" },
    );
    const p = s.process([two]);
    const id = await p.start(two);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    p.crash();
    await s.store.intake.signal(tenant, id, { name: "go", value: "on" });
    const run = await s.process([two]).over(id);
    expect([run.status, run.outcome]).toEqual(["COMPLETED", 2]);
  });
});

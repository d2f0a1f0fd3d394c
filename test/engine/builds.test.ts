import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { moveRuns } from "../../src/operator/builds.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { gate } from "../../src/sdk/gate.ts";
import { type AnyWorkflow, createRunner, type Runner, workflow } from "../../src/sdk/workflow.ts";
import { settled } from "../../testkit/clock.ts";
import { type Process, type Stage, stage, tenant, ttlMs } from "./stage.ts";

const go = gate("go");
const any = (flow: unknown): AnyWorkflow => flow as AnyWorkflow;

/** A program whose second step has this name. */
function program(
  build: string,
  second: string,
  more: { readonly pinned?: boolean } = {},
): Runner & { quote: AnyWorkflow } {
  const run = async (tape: TapeContext): Promise<string> => {
    const first = await tape.step("price", () => `price by ${build}`);
    await tape.step(second, () => build);
    await tape.gate(go);
    return `${first}, ended by ${await tape.step("end", () => build)}`;
  };
  const quote = any(workflow("quote", run, { pinned: true, ...more }));
  return { ...createRunner({ build, workflows: [quote] }), quote };
}

async function parked(s: Stage, p: Process, quote: AnyWorkflow): Promise<string> {
  const id = await p.start(quote);
  await p.until(async () => (await s.run(id)).status === "WAITING");
  return id;
}

const signal = (s: Stage, id: string) => s.store.intake.signal(tenant, id, { name: "go", value: 1 });
const poll = async (p: Process): Promise<number> => {
  const { found } = await p.worker.poll(100);
  await settled(20);
  return found;
};
const outcomeOf = async (s: Stage, id: string) => (await s.run(id)).outcome;
const buildOf = async (s: Stage, id: string) => (await s.run(id)).lease.build;

describe("a run of a pinned workflow", () => {
  it("[INV-23] is driven by the build that drove it first, although another one changed the code", async () => {
    const s = await stage();
    const [a, b] = [program("a", "tax"), program("b", "duty")];
    const [old, other] = [s.process(a), s.process(b)];
    const id = await parked(s, old, a.quote);
    expect(await buildOf(s, id)).toBe("a");
    await signal(s, id);
    expect(await poll(other)).toBe(0);
    expect((await old.over(id)).status).toBe("COMPLETED");
    expect(await outcomeOf(s, id)).toBe("price by a, ended by a");
  });

  it("[INV-23] is not taken over by another build when its process crashes", async () => {
    const s = await stage();
    const [a, b] = [program("a", "tax"), program("b", "duty")];
    const [old, other] = [s.process(a), s.process(b)];
    const id = await parked(s, old, a.quote);
    await signal(s, id);
    await old.worker.poll(100);
    old.crash();
    expect((await s.run(id)).status).toBe("RUNNING");
    await s.clock.elapse(ttlMs + 1_000);
    expect(await poll(other)).toBe(0);
    await s.process(a).over(id);
    expect(await outcomeOf(s, id)).toBe("price by a, ended by a");
  });

  it("is free until its first term, and pinned by a find", async () => {
    const s = await stage();
    const b = program("b", "duty");
    await s.store.intake.createRuns(tenant, [{ id: "free", workflow: "quote", input: null }]);
    const p = s.process(b);
    expect(await poll(p)).toBe(1);
    expect(await buildOf(s, "free")).toBe("b");
  });

  it("without a pin is driven by every process, as before", async () => {
    const s = await stage();
    const [a, b] = [program("a", "tax", { pinned: false }), program("b", "tax", { pinned: false })];
    const id = await parked(s, s.process(a), a.quote);
    expect(await buildOf(s, id)).toBeUndefined();
    await signal(s, id);
    await s.process(b).over(id);
    expect(await outcomeOf(s, id)).toBe("price by a, ended by b");
    expect(await s.store.read.builds(tenant)).toEqual([]);
  });

  it("passes its build on to children whose workflows are pinned", async () => {
    const s = await stage();
    const child = any(workflow("child", (tape: TapeContext) => tape.gate(go), { pinned: true }));
    const plain = any(workflow("plain", (tape: TapeContext) => tape.gate(go)));
    const parent = any(
      workflow(
        "parent",
        async (tape: TapeContext) => {
          await tape.spawn(child as never, null as never);
          await tape.spawn(plain as never, null as never);
          await tape.gate(go);
        },
        { pinned: true },
      ),
    );
    const p = s.process(createRunner({ build: "a", workflows: [parent, child, plain] }));
    const id = await p.start(parent);
    await settled(30);
    expect([await buildOf(s, `${id}.0`), await buildOf(s, `${id}.1`)]).toEqual(["a", undefined]);
    const unknown = s.process(createRunner({ build: "b", workflows: [parent, child, plain] }));
    expect(await poll(unknown)).toBe(1);
    expect((await s.run(`${id}.0`)).lease.nextReactor).toBe("recovery@a");
  });

  it("needs a build where it is driven", async () => {
    const s = await stage();
    const quote = any(workflow("quote", () => 1, { pinned: true }));
    expect(() => s.process([quote])).toThrow(/workflow quote is pinned, and its runner has no build/);
    expect(() => createRunner({ build: "a@b", workflows: [quote] })).toThrow(/a build has 1 to 128 letters/);
  });

  it("is logged with its build if no process of it claims the run", async () => {
    const s = await stage();
    const [a, b] = [program("a", "tax"), program("b", "duty")];
    const old = s.process(a);
    const id = await parked(s, old, a.quote);
    await signal(s, id);
    await s.clock.elapse(11_000);
    expect(await s.process(b).worker.unserved()).toBe(1);
    const { fields } = s.logged.find(({ event }) => event === "reactor.no_handler")!;
    expect(fields).toMatchObject({ workflow: "quote", build: "a", runs: 1, code: "TAPE_RUN_PINNED" });
  });
});

describe("the current build", () => {
  it("takes the new runs; the others keep those that they have", async () => {
    const s = await stage();
    const [a, b] = [program("a", "tax"), program("b", "duty")];
    const [old, next] = [s.process(a), s.process(b)];
    const kept = await parked(s, old, a.quote);
    await poll(next);
    await s.store.intake.setCurrentBuild(tenant, "b", { by: "ada", reason: "deploy" });
    await s.clock.elapse(6_000);
    const started = await old.start(a.quote);
    await settled(10);
    expect(await buildOf(s, started)).toBeUndefined();
    expect(await poll(old)).toBe(0);
    expect(await poll(next)).toBe(1);
    expect(await buildOf(s, started)).toBe("b");
    await signal(s, kept);
    expect(await poll(old)).toBe(1);
    expect(await outcomeOf(s, kept)).toBe("price by a, ended by a");
    expect(await s.store.read.isDrained(tenant, "a")).toBe(true);
  });
});

describe("a move to another build", () => {
  const operator = (s: Stage, p: Process) => ({
    ...{ store: s.store, keeper: p.keeper, tenant, clock: s.clock, random: seededRandom("move") },
  });
  const move = { from: "a", to: "b", by: "ada", reason: "a is gone" };

  /** Moves while the processes poll. */
  async function moved(s: Stage, p: Process, polling: readonly Process[], more: object = {}) {
    const done = moveRuns(operator(s, p), { ...move, ...more });
    let over = false;
    void done.finally(() => (over = true)).catch(() => {});
    for (let k = 0; k < 400 && !over; k++) {
      for (const one of polling) await one.worker.poll(100);
      await settled(10);
      await s.clock.elapse(100);
    }
    return done;
  }

  it("succeeds where the code agrees with the journal, and that code continues", async () => {
    const s = await stage();
    const [a, b] = [program("a", "tax"), program("b", "tax")];
    const [old, next] = [s.process(a), s.process(b)];
    const id = await parked(s, old, a.quote);
    await poll(next);
    expect(await moved(s, next, [next])).toEqual({ runs: [{ run: id, result: "moved" }] });
    await signal(s, id);
    expect(await poll(old)).toBe(0);
    await next.over(id);
    expect(await outcomeOf(s, id)).toBe("price by a, ended by b");
    expect((await s.store.read.audit(tenant))[0]).toMatchObject({ action: "move", by: "ada" });
  });

  it("is refused where the code differs, with the difference, and the run continues where it was", async () => {
    const s = await stage();
    const [a, b] = [program("a", "tax"), program("b", "duty")];
    const [old, next] = [s.process(a), s.process(b)];
    const id = await parked(s, old, a.quote);
    await poll(next);
    const { runs } = await moved(s, next, [next]);
    expect(runs).toEqual([
      {
        ...{ run: id, result: "refused" },
        reason: expect.stringContaining(
          'the journal has step "tax" (step.done, record 3), but the code requests step "duty"',
        ),
      },
    ]);
    expect([await buildOf(s, id), (await s.run(id)).status]).toEqual(["a", "RUNNABLE"]);
    await signal(s, id);
    await old.over(id);
    expect(await outcomeOf(s, id)).toBe("price by a, ended by a");
  });

  it("starts nothing before the whole journal is replayed", async () => {
    const s = await stage();
    const calls: string[] = [];
    const flow = (build: string, more: boolean) =>
      any(
        workflow(
          "quote",
          async (tape: TapeContext) => {
            if (more) await tape.step("early", () => void calls.push(build));
            await tape.gate(go);
          },
          { pinned: true },
        ),
      );
    const old = s.process(createRunner({ build: "a", workflows: [flow("a", false)] }));
    const next = s.process(createRunner({ build: "b", workflows: [flow("b", true)] }));
    const id = await parked(s, old, flow("a", false));
    await poll(next);
    const { runs } = await moved(s, next, [next]);
    expect(runs[0]).toMatchObject({ run: id, result: "refused" });
    expect(calls).toEqual([]);
  });

  it("waits for a process of the build, and can be reversed meanwhile", async () => {
    const s = await stage();
    const [a, b] = [program("a", "tax"), program("b", "tax")];
    const [old, next] = [s.process(a), s.process(b)];
    const id = await parked(s, old, a.quote);
    await poll(next);
    expect(await moved(s, old, [old], { run: id, withinMs: 1_000 })).toMatchObject({ runs: [{ result: "waiting" }] });
    expect(await buildOf(s, id)).toBe("b");
    expect(await moved(s, old, [old], { from: "b", to: "a" })).toEqual({ runs: [{ run: id, result: "moved" }] });
  });

  it("leaves a run alone that a process drives, and names an unknown build", async () => {
    const s = await stage();
    const [a, b] = [program("a", "tax"), program("b", "tax")];
    const [old, next] = [s.process(a), s.process(b)];
    const held = any(
      workflow("quote", (tape: TapeContext) => tape.step("long", () => new Promise(() => {})), { pinned: true }),
    );
    const busy = s.process(createRunner({ build: "a", workflows: [held] }));
    const id = await busy.start(held);
    await poll(next);
    await poll(old);
    expect(await moved(s, next, [next])).toMatchObject({ runs: [{ run: id, result: "held" }] });
    await expect(moveRuns(operator(s, next), { ...move, to: "c" })).rejects.toMatchObject({ code: "TAPE_NOT_FOUND" });
  });
});

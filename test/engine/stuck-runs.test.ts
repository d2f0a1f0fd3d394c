import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { cancelledError } from "../../src/engine/context/scope.ts";
import { stuckError } from "../../src/engine/drive/stuck.ts";
import { TapeError } from "../../src/model/errors.ts";
import { preempt } from "../../src/operator/preempt.ts";
import { redrive } from "../../src/operator/redrive.ts";
import { type Resolution, resolve } from "../../src/operator/resolve.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { type Effect, effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { AckLost } from "../../src/sdk/outcomes.ts";
import { type AnyWorkflow, createRunner, type Runner, workflow } from "../../src/sdk/workflow.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { type Process, type Stage, stage, tenant } from "./stage.ts";

const flow = (name: string, run: (tape: TapeContext, input: never) => unknown): AnyWorkflow =>
  workflow(name, run as never) as unknown as AnyWorkflow;

const compensated: string[] = [];
/** It has no observe: after a lost response only an operator can settle it. */
const wire = effect(
  "wire",
  async (n: number, fx): Promise<string> => {
    if (n < 0 && fx.attempt === 1) throw new AckLost();
    return `sent ${n}`;
  },
  { compensate: (n: number) => void compensated.push(`compensate ${n}`) },
);

async function set(run: (tape: TapeContext) => unknown, ...more: Effect<never, unknown>[]) {
  compensated.length = 0;
  const s = await stage();
  const caller = flow("caller", run);
  const runner = createRunner({ workflows: [caller], effects: [wire, ...more] as never });
  const p = s.process(runner);
  return { s, p, runner, id: await p.start(caller), ask: operatorOf(s, p, runner) };
}

/** Resolves as an operator who has checked the upstream. */
const operatorOf =
  (s: Stage, p: Process, runner: Runner) =>
  (run: string, resolution: Resolution, pos = 0, sub = 0): Promise<void> => {
    const { clock } = s;
    const deps = { store: p.store, keeper: p.keeper, tenant, clock, random, log: () => {}, runner };
    return resolve(deps, { run, pos, sub, resolution, by: "ada", reason: "asked the bank" });
  };
const random = seededRandom("operator");
const over = async (s: Stage, p: Process, id: string): Promise<string> => {
  await p.until(async () => (await s.run(id)).endedAt !== null);
  return (await s.run(id)).status;
};

describe("a run whose effect needs an operator", () => {
  it("is STUCK, says why and what to do, and resumes once the effect is resolved", async () => {
    const { s, p, id, ask } = await set((tape) => tape.effect(wire.with(-1)));
    const stuck = await p.over(id);
    expect([stuck.status, stuck.stuckFrom]).toEqual(["STUCK", "LIVE"]);
    const error = await stuckError(s.store, tenant, id);
    expect(error).toBeInstanceOf(TapeError);
    expect(error.code).toBe("TAPE_RUN_STUCK");
    expect(error.message).toMatch(
      /wire at position 0 is unknown \(unobservable; the last attempt failed with: the answer was lost\).*resolve it as confirmed or failed/,
    );
    expect(error.details).toMatchObject({ run: id, effect: "wire", pos: 0, reason: "unobservable" });
    await ask(id, { as: "confirmed", value: "seen" });
    expect(await over(s, p, id)).toBe("COMPLETED");
    expect((await s.run(id)).outcome).toBe("seen");
    expect((await s.kinds(id)).filter((kind) => kind.includes("stuck"))).toEqual(["run.stuck", "run.unstuck"]);
    const [item] = (await s.store.read.effects(tenant, { run: id, role: "effect" })).map((row) => row.item!);
    const action = (await s.store.read.journal(tenant, { journal: item! })).find(
      ({ kind }) => kind === "operator.action",
    );
    expect(action?.data).toMatchObject({ by: "ada", action: "resolve", reason: "asked the bank" });
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("resumes with a failure, or with another attempt under the same key", async () => {
    const failed = await set((tape) => tape.attempt(wire.with(-2)));
    await failed.p.over(failed.id);
    await failed.ask(failed.id, { as: "failed", error: new Error("the bank knows nothing of it") });
    expect(await over(failed.s, failed.p, failed.id)).toBe("COMPLETED");
    expect((await failed.s.run(failed.id)).outcome).toMatchObject({ status: "failed", reason: "operator" });
    const again = await set((tape) => tape.effect(wire.with(-3)));
    await again.p.over(again.id);
    await again.ask(again.id, { as: "retry" });
    await again.p.until(async () => (await again.s.run(again.id)).status !== "STUCK");
    expect(await over(again.s, again.p, again.id)).toBe("COMPLETED");
    expect((await again.s.run(again.id)).outcome).toBe("sent -3");
    const [row] = await again.s.store.read.effects(tenant, { run: again.id, role: "effect" });
    expect([row!.attempt, row!.key]).toEqual([2, `${again.id}:0`]);
  });

  it("is settled by a process with its definition if it was confirmed without one", async () => {
    const fails = (tape: TapeContext) =>
      tape.effect(wire.with(-7)).then(() => Promise.reject(new Error("the next step")));
    const { s, p, id, ask } = await set(fails);
    await p.over(id);
    const elsewhere = operatorOf(s, p, createRunner({ workflows: [] }));
    await elsewhere(id, { as: "confirmed", value: "seen" });
    expect((await s.store.read.effects(tenant, { run: id, role: "effect" }))[0]!.status).toBe("STUCK");
    // The first resolution counts: a second one is rejected even before the first is settled.
    await expect(ask(id, { as: "failed" })).rejects.toMatchObject({ code: "TAPE_ILLEGAL_TRANSITION" });
    expect(await over(s, p, id)).toBe("COMPENSATED");
    expect(compensated).toEqual(["compensate -7"]);
    const [row] = await s.store.read.effects(tenant, { run: id, role: "effect" });
    expect(row).toMatchObject({ status: "CONFIRMED", reason: "operator" });
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("is STUCK only once nothing else can resume it", async () => {
    const go = gate("go");
    const { s, p, id, ask } = await set((tape) =>
      Promise.all([tape.effect(wire.with(-4)), tape.gate(go), tape.effect(wire.with(-5))]),
    );
    const stuckEffects = async () => (await s.store.read.effects(tenant, { run: id, status: ["STUCK"] })).length;
    await p.until(async () => (await stuckEffects()) === 2 && (await s.run(id)).status === "WAITING");
    await s.store.intake.signal(tenant, id, { name: "go", value: 1 });
    expect((await p.over(id)).status).toBe("STUCK");
    await ask(id, { as: "confirmed", value: "a" }, 0);
    await p.until(async () => (await s.kinds(id)).filter((kind) => kind === "run.stuck").length === 2);
    expect((await s.run(id)).status).toBe("STUCK");
    await ask(id, { as: "confirmed", value: "b" }, 2);
    expect(await over(s, p, id)).toBe("COMPLETED");
    expect((await s.run(id)).outcome).toEqual(["a", { status: "received", value: 1 }, "b"]);
  });

  it("stays STUCK after a redrive or a cancellation until the effect is resolved", async () => {
    const { s, p, runner, id, ask } = await set((tape) => tape.effect(wire.with(-6)));
    await p.over(id);
    const deps = { store: p.store, keeper: p.keeper, tenant, clock: s.clock, random, runner };
    await redrive(deps, id, { by: "ada", reason: "try" });
    await p.until(async () => (await s.kinds(id)).filter((kind) => kind === "run.stuck").length === 2);
    await s.store.intake.cancel(tenant, id, { reason: "enough" });
    await p.reactors();
    expect((await s.run(id)).status).toBe("STUCK");
    await ask(id, { as: "confirmed", value: "seen" });
    expect(await over(s, p, id)).toBe("COMPENSATED");
    expect(compensated).toEqual(["compensate -6"]);
  });

  it("rejects a second redrive, which releases the run unchanged", async () => {
    const { s, p, runner, id, ask } = await set((tape) => tape.effect(wire.with(-7)));
    await p.over(id);
    const deps = { store: p.store, keeper: p.keeper, tenant, clock: s.clock, random, runner };
    const { claim } = p.store;
    const acquire: typeof claim.acquire = async (...args) => {
      await redrive(deps, id, { by: "bob", reason: "first" });
      return claim.acquire(...args);
    };
    const late = { ...deps, store: { ...p.store, claim: { ...claim, acquire } } };
    await expect(redrive(late, id, { by: "ada", reason: "second" })).rejects.toMatchObject({
      code: "TAPE_ILLEGAL_TRANSITION",
    });
    const lease = await s.store.read.lease(tenant, { run: id });
    expect(lease).toMatchObject({ state: "FREE", owner: null, nextReactor: "recovery" });
    const action = (await s.store.read.journal(tenant, { run: id })).filter(({ kind }) => kind === "operator.action");
    expect(action).toMatchObject([{ data: { by: "bob", action: "redrive" } }]);
    await ask(id, { as: "confirmed", value: "seen" });
    expect(await over(s, p, id)).toBe("COMPLETED");
  });

  it("counts a note that arrives while an operator holds the run", async () => {
    const go = gate("go");
    const { s, p, runner, id } = await set(async (tape) => [await tape.effect(wire.with(-8)), await tape.gate(go)]);
    await p.over(id);
    const { fenced } = p.store;
    let tries = 0;
    const append: typeof fenced.append = async (...args) => {
      if (tries++ === 0) await s.store.intake.signal(tenant, id, { name: "go", value: 1 });
      return fenced.append(...args);
    };
    const store = { ...p.store, fenced: { ...fenced, append } };
    const deps = { store, keeper: p.keeper, tenant, clock: s.clock, random, runner };
    await preempt(deps, { run: id }, { by: "ada", reason: "it hangs" });
    expect(tries).toBe(2);
    expect(await s.store.read.lease(tenant, { run: id })).toMatchObject({ state: "FREE", nextReactor: "recovery" });
    expect((await s.store.read.run(tenant, id))?.notes).toBeGreaterThan(0);
    await operatorOf(s, p, runner)(id, { as: "confirmed", value: "seen" });
    expect(await over(s, p, id)).toBe("COMPLETED");
    expect((await s.run(id)).outcome).toEqual(["seen", { status: "received", value: 1 }]);
  });

  it("names its effect while it ends or compensates, and resumes when that is resolved", async () => {
    let tries = 0;
    const pay = effect("pay", async (_: null) => "paid", {
      compensate: () => {
        if (++tries === 1) throw new AckLost();
      },
    });
    const { s, p, id, ask } = await set(async (tape) => {
      await tape.effect(pay.with(null));
      void tape.effect(wire.with(-7)).catch(() => {});
      await tape.step("settle", () => {});
      throw cancelledError();
    }, pay as never);
    const ending = await p.over(id);
    expect([ending.status, ending.stuckFrom]).toEqual(["STUCK", "ENDING"]);
    await ask(id, { as: "failed" }, 1);
    await p.until(async () => (await s.run(id)).stuckFrom === "COMPENSATING");
    expect((await stuckError(s.store, tenant, id)).message).toMatch(
      /compensation of pay at position 0.*resolve it as confirmed once the effect is reversed/,
    );
    await expect(ask(id, { as: "failed" }, 0, 1)).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
    await ask(id, { as: "retry" }, 0, 1);
    expect(await over(s, p, id)).toBe("COMPENSATED");
    expect(tries).toBe(2);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });
});

describe("resolve", () => {
  it("the first resolution wins; an effect that is settled or missing is rejected", async () => {
    const { p, id, ask } = await set((tape) => tape.effect(wire.with(-8)));
    await p.over(id);
    await ask(id, { as: "confirmed" });
    await expect(ask(id, { as: "failed" })).rejects.toMatchObject({ code: "TAPE_ILLEGAL_TRANSITION" });
    await expect(ask(id, { as: "failed" }, 9)).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
    await expect(ask("missing", { as: "failed" })).rejects.toMatchObject({ code: "TAPE_RUN_NOT_FOUND" });
  });
});

describe("a run whose record the store rejects", () => {
  it("is STUCK with the reason, released and logged, and resumes after a redrive", async () => {
    const s = await stage();
    const caller = flow("caller", async (tape) => {
      await tape.step("good", () => 1);
      return tape.step("bad", () => 2);
    });
    let broken = true;
    const reject = async (records: readonly { kind: string; data: object }[], append: () => Promise<never>) => {
      if (broken && records.some(({ data }) => "name" in data && data.name === "bad"))
        throw new TapeError("TAPE_INVARIANT", "the database rejected a statement (22003)");
      return append();
    };
    const { fenced } = s.store;
    const rejecting = {
      ...fenced,
      append: (fence, entry) => reject(entry.records, () => fenced.append(fence, entry) as never),
    } as typeof fenced;
    const runner = createRunner({ workflows: [caller] });
    const p = s.process(runner, { store: { ...s.store, fenced: rejecting } });
    const id = await p.start(caller);
    expect((await p.over(id)).status).toBe("STUCK");
    expect(await s.kinds(id)).toEqual(["run.created", "step.done", "run.stuck", "term.ended"]);
    expect(s.logged).toContainEqual(expect.objectContaining({ level: "error", event: "run.stuck" }));
    expect((await stuckError(s.store, tenant, id)).message).toContain("the database rejected a statement (22003)");
    broken = false; // a new version of the program
    const deps = { store: p.store, keeper: p.keeper, tenant, clock: s.clock, random, log: () => {}, runner };
    await redrive(deps, id, { by: "ada", reason: "fixed" });
    expect(await over(s, p, id)).toBe("COMPLETED");
  });
});

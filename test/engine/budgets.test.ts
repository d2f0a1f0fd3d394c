import { describe, expect, it } from "vitest";
import { TapeError } from "../../src/model/errors.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { gate } from "../../src/sdk/gate.ts";
import { type AnyWorkflow, type Workflow, workflow } from "../../src/sdk/workflow.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { type Process, type Stage, stage, tenant } from "./stage.ts";

const flow = (name: string, run: (tape: TapeContext, input: never) => unknown): AnyWorkflow =>
  workflow(name, run as never) as unknown as AnyWorkflow;
const budget = { usd: 10_000_000 };
const go = gate("go");
const never = (): Promise<never> => new Promise(() => {});
const left = async (s: Stage, id: string): Promise<readonly [reserved: number, spent: number]> => {
  const [row] = await s.store.read.budgets(tenant, id);
  return [row!.reserved / 1e6, row!.spent / 1e6];
};
const ended = async (s: Stage, p: Process, id: string): Promise<string> => {
  const { status } = await p.over(id);
  expect(await checkProjection(s.store, [tenant])).toEqual([]);
  return status;
};

describe("a run that ends between reserving and charging leaves no reservation", () => {
  it("after a failure in another branch the whole reservation counts as spent", async () => {
    const s = await stage();
    const spender = flow("spender", (tape) => {
      const call = tape.budget.spend({ usd: 4 }, never);
      return Promise.all([call, tape.gate(go).then(() => Promise.reject(new Error("no")))]);
    });
    const p = s.process([spender]);
    const id = await p.start(spender, null, { budget });
    await p.until(async () => (await left(s, id))[0] === 4);
    await s.store.intake.signal(tenant, id, { name: "go", value: 1 });
    expect(await ended(s, p, id)).toBe("FAILED");
    expect(await left(s, id)).toEqual([0, 4]);
  });

  it("a cancelled child keeps no reservation, so its parent may spend exactly the rest", async () => {
    const s = await stage();
    const child = flow("child", (tape) =>
      Promise.all([tape.budget.spend({ usd: 9 }, never), tape.gate(go)]),
    ) as unknown as Workflow<null, never>;
    const parent = flow("parent", async (tape) => {
      const one = await tape.spawn(child, null);
      await tape.gate(go);
      const result = await one.result().catch((error: { code: string }) => error.code);
      const after = await tape.budget
        .spend({ usd: 1 }, async () => ({ cost: { usd: 1 }, value: "bought" }))
        .catch((error: { code: string }) => error.code);
      const more = await tape.budget
        .spend({ usd: 1 }, async () => ({ cost: { usd: 0 }, value: "bought" }))
        .catch((error: { code: string }) => error.code);
      return [result, after, more];
    });
    const p = s.process([parent, child as unknown as AnyWorkflow]);
    const id = await p.start(parent, null, { budget });
    await p.until(async () => (await left(s, id))[0] === 9);
    await s.store.intake.cancel(tenant, `${id}.0`, { reason: "enough" });
    await s.store.intake.signal(tenant, id, { name: "go", value: 1 });
    expect(await ended(s, p, id)).toBe("COMPLETED");
    expect((await s.run(id)).outcome).toEqual(["TAPE_RUN_FAILED", "bought", "TAPE_BUDGET_EXCEEDED"]);
    expect(await left(s, id)).toEqual([0, 10]);
  });

  it("the reservation of a race loser is closed when the run completes", async () => {
    const s = await stage();
    const racer = flow("racer", (tape) =>
      tape.race([tape.budget.spend({ usd: 3 }, never), tape.sleep("1s").then(() => "slept")]),
    );
    const p = s.process([racer]);
    const id = await p.start(racer, null, { budget });
    expect(await ended(s, p, id)).toBe("COMPLETED");
    expect(await left(s, id)).toEqual([0, 3]);
  });
});

describe("a unit without a cap", () => {
  it("is counted, and a cost beyond the reservation is recorded as over", async () => {
    const s = await stage();
    const thinker = flow("thinker", (tape) =>
      tape.budget.spend({ tokens: 100, usd: 1 }, async () => ({
        cost: { tokens: 150, usd: 1, calls: 1 },
        value: "yes",
      })),
    );
    const p = s.process([thinker]);
    const id = await p.start(thinker, null);
    expect(await ended(s, p, id)).toBe("COMPLETED");
    const rows = await s.store.read.budgets(tenant, id);
    expect(rows.map(({ unit, cap, reserved, spent }) => [unit, cap, reserved, spent / 1e6])).toEqual([
      ["calls", null, 0, 1],
      ["tokens", null, 0, 150],
      ["usd", null, 0, 1],
    ]);
    const charged = (await s.records(id)).find(({ kind }) => kind === "budget.charged");
    expect(charged?.data).toMatchObject({ over: { calls: 1e6, tokens: 50e6 } });
  });

  it("more units than a tree may have fail the call, and its reservation is charged", async () => {
    const s = await stage({ limits: { budgetUnits: 2 } });
    const thinker = flow("thinker", async (tape) => {
      const call = async () => ({ cost: { usd: 1, tokens: 2, calls: 3 }, value: "yes" });
      const code = await tape.budget.spend({ usd: 4 }, call).catch((error: { code: string }) => error.code);
      await tape.gate(go);
      return code;
    });
    const p = s.process([thinker]);
    const id = await p.start(thinker, null, { budget });
    await p.until(async () => (await left(s, id))[1] === 1);
    expect(await left(s, id)).toEqual([0, 1]);
    await s.store.intake.signal(tenant, id, { name: "go", value: 1 });
    expect(await ended(s, p, id)).toBe("COMPLETED");
    expect((await s.run(id)).outcome).toBe("TAPE_TOO_LARGE");
  });
});

describe("a call that was lost with its term", () => {
  /** Loses `lost` terms while the model is asked, then lets it answer. */
  async function spendAndLose(lost: number): Promise<{ s: Stage; id: string; calls: number }> {
    const s = await stage();
    let calls = 0;
    const thinker = flow("thinker", (tape) =>
      tape.budget.spend({ usd: 4 }, async () => {
        await tape.step("prepare", () => 1);
        const value = await tape.decide("model", () => (calls++ < lost ? never() : "yes"));
        await tape.step("note", () => 1);
        return { cost: { usd: 1 }, value };
      }),
    );
    let p = s.process([thinker]);
    const id = await p.start(thinker, null, { budget });
    for (let k = 1; k <= lost; k++) {
      await p.until(() => calls === k);
      p.crash();
      p = s.process([thinker]);
    }
    expect(await ended(s, p, id)).toBe("COMPLETED");
    return { s, id, calls };
  }

  it.each([0, 1, 2])("is charged as presumed before it is made again: %i lost", async (lost) => {
    const { s, id, calls } = await spendAndLose(lost);
    expect(calls).toBe(lost + 1);
    expect(await left(s, id)).toEqual([0, 4 * lost + 1]);
    const kinds = await s.kinds(id);
    expect(kinds.filter((kind) => kind === "budget.presumed")).toHaveLength(lost);
    expect(kinds.indexOf("budget.presumed")).toBeLessThan(kinds.indexOf("decision.made"));
  });

  it("is presumed if its result was not written, although its process lives", async () => {
    const s = await stage();
    let calls = 0;
    const thinker = flow("thinker", (tape) =>
      tape.budget.spend({ usd: 4 }, async () => {
        const value = await tape.decide("model", () => `answer ${++calls}`);
        return { cost: { usd: 1 }, value };
      }),
    );
    let fails = true;
    const store = {
      ...s.store,
      fenced: {
        ...s.store.fenced,
        append: async (...[fence, entry]: Parameters<typeof s.store.fenced.append>) => {
          const isAnswer = entry.records.some(({ kind }) => kind === "decision.made");
          if (isAnswer && fails) {
            fails = false;
            throw new TapeError("TAPE_STORE_BUSY", "the disk is slow");
          }
          return s.store.fenced.append(fence, entry);
        },
      },
    };
    const p = s.process([thinker], { store });
    const id = await p.start(thinker, null, { budget });
    expect(await ended(s, p, id)).toBe("COMPLETED");
    expect([calls, await left(s, id)]).toEqual([2, [0, 5]]);
  });

  it("is not presumed if the lost term waited between reservation and call", async () => {
    const s = await stage();
    let slow = 0;
    const thinker = flow("thinker", (tape) =>
      Promise.all([
        tape.budget.spend({ usd: 4 }, async () => {
          await tape.gate(go);
          return { cost: { usd: 1 }, value: await tape.decide("model", () => "yes") };
        }),
        tape.step("slow", () => (slow++ === 0 ? never() : 1)),
      ]),
    );
    const first = s.process([thinker]);
    const id = await first.start(thinker, null, { budget });
    await first.until(async () => slow === 1 && (await s.store.read.gates(tenant, { run: id })).length === 1);
    first.crash();
    const p = s.process([thinker]);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    await s.store.intake.signal(tenant, id, { name: "go", value: 1 });
    expect(await ended(s, p, id)).toBe("COMPLETED");
    const kinds = await s.kinds(id);
    expect([slow, kinds.includes("budget.presumed")]).toEqual([2, false]);
    expect(await left(s, id)).toEqual([0, 1]);
  });
});

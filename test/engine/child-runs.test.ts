import { describe, expect, it } from "vitest";
import { stuckError } from "../../src/engine/drive/stuck.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { AckLost } from "../../src/sdk/outcomes.ts";
import { type AnyWorkflow, createRunner, type Workflow, workflow } from "../../src/sdk/workflow.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { stage, tenant } from "./stage.ts";

const flow = (name: string, run: (tape: TapeContext, input: string) => unknown): Workflow<string, unknown> =>
  workflow(name, run as never) as unknown as Workflow<string, unknown>;

/** root → middle → leaf, and root → aside. The leaf and aside complete; the middle run ends as `how` says. */
async function tree(onCompensate: (what: string) => void = () => {}) {
  const s = await stage();
  const compensated: string[] = [];
  const book = effect("book", async (what: string) => what, {
    compensate: (what: string) => {
      onCompensate(what);
      compensated.push(what);
    },
  });
  const leaf = flow("leaf", async (tape, what) => {
    await tape.effect(book.with(`${what} 1`));
    return tape.effect(book.with(`${what} 2`));
  });
  const middle = flow("middle", async (tape, how) => {
    const child = await tape.spawn(leaf, "leaf");
    await child.result();
    await tape.effect(book.with("middle"));
    if (how === "waits") await tape.gate(gate("never"));
    if (how === "fails") throw new Error("no");
    return how;
  });
  const root = flow("root", async (tape, how) => {
    await (await tape.spawn(leaf, "aside")).result();
    const child = await tape.spawn(middle, how);
    return child.result().catch((error: { details: { status: string } }) => error.details.status);
  });
  const runner = createRunner({ workflows: [root, middle, leaf] as never, effects: [book] });
  const p = s.process(runner);
  const start = (how: string) => p.start(root as unknown as AnyWorkflow, how);
  const statuses = async (id: string) =>
    Object.fromEntries(
      (await s.store.read.effects(tenant, { role: "compensation" }))
        .filter(({ key }) => key.startsWith(id))
        .map(({ args, status }) => [/leaf \d|aside \d|middle/.exec(args)![0], status]),
    );
  return { s, p, compensated, start, statuses };
}

const owed = { "aside 1": "DISCHARGED", "aside 2": "DISCHARGED" };

describe("a run in the middle of its tree", () => {
  it.each(["fails", "waits"])("that %s compensates its finished children, and no sibling", async (how) => {
    const { s, p, compensated, start, statuses } = await tree();
    const id = await start(how);
    if (how === "waits") {
      await p.until(async () => (await s.store.read.gates(tenant, { run: `${id}.2`, open: true })).length > 0);
      await s.store.intake.cancel(tenant, `${id}.2`, { reason: "enough" });
    }
    const run = await p.over(id);
    expect([run.status, run.outcome]).toEqual(["COMPLETED", "COMPENSATED"]);
    const gone = { "leaf 1": "COMPENSATED", "leaf 2": "COMPENSATED", middle: "COMPENSATED" };
    expect(await statuses(id)).toEqual({ ...owed, ...gone });
    expect(compensated.filter((what) => what !== "middle")).toEqual(["leaf 2", "leaf 1"]);
    expect(compensated).toHaveLength(3);
    expect((await s.run(`${id}.2`)).status).toBe("COMPENSATED");
    expect((await s.run(`${id}.2.0`)).status).toBe("COMPLETED");
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("that completes compensates nothing", async () => {
    const { p, compensated, start, statuses } = await tree();
    const id = await start("works");
    expect((await p.over(id)).outcome).toBe("works");
    expect(compensated).toEqual([]);
    expect(new Set(Object.values(await statuses(id)))).toEqual(new Set(["DISCHARGED"]));
  });

  it("is STUCK when the compensation of a finished child needs an operator", async () => {
    const { s, p, start } = await tree((what) => {
      if (what === "leaf 2") throw new AckLost();
    });
    const id = await start("fails");
    const middle = `${id}.2`;
    await p.until(async () => (await s.store.read.run(tenant, middle))?.status === "STUCK");
    const error = await stuckError(s.store, tenant, middle);
    expect(error.message).toMatch(/compensation of book at position 1/);
    const { journal } = await s.run(`${middle}.0`);
    expect(error.details.effects).toEqual([{ run: journal, pos: 1, sub: 1 }]);
  });
});

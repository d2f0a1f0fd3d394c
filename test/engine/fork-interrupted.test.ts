import { describe, expect, it } from "vitest";
import type { TapeContext } from "../../src/sdk/context.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { stage, tenant } from "./stage.ts";

it("a fork whose source was deleted before it started is STUCK, and none of it runs", async () => {
  const s = await stage();
  let calls = 0;
  const count = workflow("count", (async (tape: TapeContext) => tape.step("one", () => ++calls)) as never);
  const p = s.process([count as unknown as AnyWorkflow]);
  const source = await p.start(count as unknown as AnyWorkflow);
  const { journal, endedAt } = await p.over(source);
  expect(calls).toBe(1);
  const fork = { journal, pos: 1, through: 2, by: "ada", reason: "again", seeds: [] };
  // The creating process crashes before it writes the kept records, and then the source is pruned.
  await s.store.intake.createRuns(tenant, [{ id: "fork", workflow: "count", input: null, forkedFrom: source, fork }]);
  await s.clock.elapse(10);
  expect(await s.store.intake.prune(tenant, endedAt! + 5, 10)).toBe(1);
  expect(await p.over("fork")).toMatchObject({ status: "STUCK", stuckFrom: "LIVE" });
  const stuck = (await s.records("fork")).filter(({ kind }) => kind === "run.stuck");
  expect(stuck).toMatchObject([{ data: { detail: { code: "TAPE_BAD_FORK_POINT" } } }]);
  expect(calls).toBe(1);
  for (let k = 0; k < 5; k++) {
    await p.reactors();
    await s.clock.elapse(10_000);
  }
  expect((await s.records("fork")).filter(({ kind }) => kind === "run.stuck")).toHaveLength(1); // it stays parked
  expect(await checkProjection(s.store, [tenant])).toEqual([]);
});

describe("a fork of a run that was cancelled while it held a reservation", () => {
  it("requests again what the cancellation rejected, and keeps no charge that it caused", async () => {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const buy = workflow("buy", async (tape, _: null) =>
      tape.budget.spend({ usd: 1 }, async () => {
        await held;
        await tape.sleep("1s");
        return { cost: { usd: 1 }, value: "bought" };
      }),
    );
    const t = await VirtualTape.open({ runner: createRunner({ workflows: [buy] }) });
    try {
      await t.start(buy, null, { id: "first", budget: { usd: 5 } });
      await t.elapse(10);
      await t.cancel("first");
      await t.elapse(10);
      release();
      await t.elapse(1_000);
      expect((await t.time.during(t.tape.runs.get("first")))?.status).toBe("CANCELLED");
      const by = { by: "ada", reason: "it was cancelled by mistake" };
      const { id } = await t.time.during(t.tape.fork("first", { ...by, id: "second" }));
      await t.elapse(5_000);
      expect((await t.time.during(t.tape.runs.get(id)))?.status).toBe("COMPLETED");
    } finally {
      await t.close();
    }
  });
});

import { describe, expect, it } from "vitest";
import type { MapOptions } from "../../src/sdk/context.ts";
import { gate } from "../../src/sdk/gate.ts";
import { type AnyWorkflow, workflow } from "../../src/sdk/workflow.ts";
import { stage, tenant } from "./stage.ts";

const square = workflow("square", async (tape, n: number) => {
  const result = await tape.step("multiply", () => n * n);
  if (n === 13) throw new Error("unlucky");
  return result;
});

async function mapped(numbers: readonly number[], options: MapOptions = {}) {
  const s = await stage();
  const lead = workflow("lead", async (tape) => {
    const squares = await tape.map(numbers, (n) => tape.call(square, n), options);
    await tape.gate(gate("hold"), { timeout: "1s" }); // the rest is a replay
    return squares;
  });
  const p = s.process([lead, square] as unknown as AnyWorkflow[]);
  const run = await p.start(lead as unknown as AnyWorkflow);
  const view = await p.over(run);
  return { s, run, view };
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, k) => k + 20);

describe("tape.map", () => {
  it("returns the results in the order of the items", async () => {
    const { view } = await mapped(numbers(25), { concurrency: 4 });
    expect(view.outcome).toEqual(numbers(25).map((n) => n * n));
  });

  it("starts the items of one turn in one append, and no more than the concurrency at once", async () => {
    const { s, run } = await mapped(numbers(9), { concurrency: 3 });
    const records = await s.records(run);
    const starts = records.flatMap(({ kind, at, seq }) => (kind === "child.started" ? [{ at, seq }] : []));
    expect(starts.slice(0, 3).map(({ seq }) => seq - starts[0]!.seq)).toEqual([0, 1, 2]);
    let live = 0;
    let max = 0;
    for (const { kind } of records) {
      if (kind === "child.started") max = Math.max(max, ++live);
      if (kind === "child.received") live--;
    }
    expect(max).toBe(3);
  });

  it("throws the first failure once the items under way are through, and starts no other", async () => {
    const { s, run, view } = await mapped([1, 13, 3, 4, 5, 6, 7, 8], { concurrency: 3 });
    expect(view.status).toBe("FAILED");
    expect(view.outcome).toMatchObject({ code: "TAPE_RUN_FAILED" });
    const kinds = await s.kinds(run);
    const started = kinds.filter((kind) => kind === "child.started").length;
    expect(started).toBeLessThan(8);
    expect(kinds.filter((kind) => kind === "child.received")).toHaveLength(started);
    const { items } = { items: await s.store.read.runs(tenant, { root: run } as never) };
    expect(items.every(({ endedAt }) => endedAt !== null)).toBe(true);
  });

  it("with settle returns the outcome of every item", async () => {
    const { view } = await mapped([2, 13, 3], { concurrency: 1, settle: true });
    expect(view.outcome).toMatchObject([
      { status: "fulfilled", value: 4 },
      { status: "rejected", reason: { code: "TAPE_RUN_FAILED" } },
      { status: "fulfilled", value: 9 },
    ]);
  });

  it("of no items is empty", async () => {
    expect((await mapped([])).view.outcome).toEqual([]);
  });

  it.each([
    [{ concurrency: 0 }, "TAPE_BAD_INPUT"],
    [{ concurrency: 1_001 }, "TAPE_BAD_INPUT"],
    [{ concurency: 3 }, "TAPE_BAD_INPUT"],
    [{ settle: "yes" }, "TAPE_BAD_INPUT"],
  ])("rejects the options %o", async (options, code) => {
    expect((await mapped([1], options as never)).view.outcome).toMatchObject({ code });
  });
});

import { describe, expect } from "vitest";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { VirtualTape } from "../../testkit/kit/virtual-tape.ts";
import { onBothStores } from "../kit/both-stores.ts";

const both = onBothStores();
const operator = { by: "ada", reason: "the code was fixed" };

/** A booking that is compensated if the run fails; shipping relies on it. */
function booking() {
  const ledger: string[] = [];
  const state = { broken: true };
  const go = gate<string>("go");
  const book = effect("book", (_: null, fx) => `booking ${ledger.push(`act ${fx.key.split(":")[0]}`)}`, {
    compensate: (_args, _result, fx) => void ledger.push(`compensate ${fx.key.split(":")[0]}`),
  });
  const ship = workflow("ship", async (tape, waits: boolean) => {
    await book(null);
    if (waits) await tape.gate(go);
    await tape.step("ship", () => {
      if (state.broken) throw new Error("no lorry");
      ledger.push(`shipped ${tape.runId}`);
    });
  });
  const parent = workflow("parent", async (tape, waits: boolean) => {
    const child = await tape.spawn(inner, null);
    await child.result();
    if (waits) await tape.gate(go);
    await tape.step("ship", () => {
      if (state.broken) throw new Error("no lorry");
      ledger.push(`shipped ${tape.runId}`);
    });
  });
  const inner = workflow("inner", () => book(null));
  return {
    ledger,
    state,
    go,
    ship,
    parent,
    runner: createRunner({ workflows: [ship, parent, inner], effects: [book] }),
  };
}
const planOf = (t: VirtualTape, run: string, at?: number) => t.time.during(t.tape.forkPlan(run, at));
const forkOf = (t: VirtualTape, run: string, more: object) => t.time.during(t.tape.fork(run, { ...operator, ...more }));

describe("a fork of a run that compensated its effects", () => {
  both("is rejected unless it names them, and repeats them if it starts before them", async (open) => {
    const { ledger, state, ship, runner } = booking();
    const t = await open(runner);
    await t.start(ship, false, { id: "I" });
    expect(await t.settle()).toMatchObject([{ status: "COMPENSATED" }]);
    state.broken = false;
    expect(await planOf(t, "I")).toMatchObject({ compensated: [{ pos: 0, name: "book", obligation: "COMPENSATED" }] });
    await expect(forkOf(t, "I", { id: "I2" })).rejects.toMatchObject({
      code: "TAPE_BAD_FORK_POINT",
      message: expect.stringContaining("book at 0 (COMPENSATED)"),
      details: { positions: [0] },
    });
    expect(await t.time.during(t.tape.runs.get("I2"))).toBeUndefined();
    // The effect was compensated, so repeating it does not make it happen twice.
    expect(await planOf(t, "I", 0)).toMatchObject({ compensated: [], alreadyHappened: [], notCompensated: [] });
    await forkOf(t, "I", { id: "I3", at: 0 });
    await t.settle();
    expect(ledger).toEqual(["act I", "compensate I", "act I3", "shipped I3"]);
    await forkOf(t, "I", { id: "I4", keepCompensated: [0] });
    await t.settle();
    expect(ledger.at(-1)).toBe("shipped I4");
  });

  both("is rejected, too, if the source may still compensate, also through a fork of a fork", async (open) => {
    const { ledger, state, go, ship, runner } = booking();
    const t = await open(runner);
    await t.start(ship, true, { id: "K" });
    await t.elapse(1_000);
    state.broken = false;
    expect(await planOf(t, "K")).toMatchObject({ compensated: [{ pos: 0, obligation: "ARMED" }] });
    await expect(forkOf(t, "K", { id: "K2" })).rejects.toMatchObject({ code: "TAPE_BAD_FORK_POINT" });
    await forkOf(t, "K", { id: "K3", keepCompensated: [0] });
    await t.cancel("K");
    await t.elapse(5_000);
    expect(ledger).toEqual(["act K", "compensate K"]);
    // K3 kept an effect of K, and K has compensated it: a fork of K3 is rejected, too.
    expect(await planOf(t, "K3")).toMatchObject({ compensated: [{ pos: 0, obligation: "COMPENSATED" }] });
    await expect(forkOf(t, "K3", { id: "K4" })).rejects.toMatchObject({ code: "TAPE_BAD_FORK_POINT" });
    await t.signal("K3", go, "now");
    await t.settle();
  });

  both("a child with compensated effects counts as compensated", async (open) => {
    const { state, parent, runner } = booking();
    const t = await open(runner);
    await t.start(parent, false, { id: "P" });
    await t.settle();
    state.broken = false;
    expect(await planOf(t, "P")).toMatchObject({ compensated: [{ pos: 0, what: "child", obligation: "COMPENSATED" }] });
    await expect(forkOf(t, "P", { id: "P2" })).rejects.toMatchObject({ code: "TAPE_BAD_FORK_POINT" });
  });

  both("a kept effect is not compensated by a fork that fails, and the plan says so", async (open) => {
    const { ledger, state, ship, runner } = booking();
    state.broken = false;
    const t = await open(runner);
    await t.start(ship, false, { id: "W" });
    await t.settle();
    expect(await planOf(t, "W", 1)).toMatchObject({ compensated: [], notCompensated: [{ pos: 0, name: "book" }] });
    state.broken = true;
    await forkOf(t, "W", { id: "W2", at: 1 });
    await t.settle();
    expect(await t.time.during(t.tape.runs.get("W2"))).toMatchObject({ status: "FAILED" });
    expect(ledger).toEqual(["act W", "shipped W"]);
  });
});

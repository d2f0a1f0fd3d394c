import { describe, expect, it } from "vitest";
import type { TapeContext } from "../../src/sdk/context.ts";
import { type Effect, effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { settled } from "../../testkit/clock.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { type Process, type Stage, stage, tenant } from "./stage.ts";

const go = gate("go");
const flow = (name: string, run: (tape: TapeContext) => unknown): AnyWorkflow =>
  workflow(name, run as never) as unknown as AnyWorkflow;
const on = (s: Stage, run: AnyWorkflow, ...effects: Effect<never, unknown>[]): Process =>
  s.process(createRunner({ workflows: [run], effects }));
const acts = async (s: Stage, run: string): Promise<string[]> =>
  (await s.store.read.effects(tenant, { run, role: "effect" })).map(({ name, status }) => `${name} ${status}`);
const owed = async (s: Stage, run: string): Promise<string[]> =>
  (await s.store.read.effects(tenant, { run, role: "compensation" })).map(({ status }) => status);

async function cancelled(s: Stage, p: Process, id: string): Promise<void> {
  await s.store.intake.cancel(tenant, id, { reason: "not wanted" });
  await p.until(async () => (await s.kinds(id)).includes("notes.taken"));
  await settled(10);
}

describe("an act confirmed after the cancellation", () => {
  it.each([
    ["with an inverse it is undone", true, "COMPENSATED", ["COMPENSATED"], ["sent", "undone receipt"]],
    ["without one it is settled, and that is all", false, "CANCELLED", [], ["sent"]],
  ] as const)("%s", async (_, undoes, status, obligations, seen) => {
    const s = await stage();
    const world: string[] = [];
    let answer = (): void => {};
    const body = (_: null): Promise<string> =>
      new Promise<string>((resolve) => {
        world.push("sent");
        answer = () => resolve("receipt");
      });
    const slow = effect("slow", body, {
      ...(undoes
        ? { compensate: (_: null, result: string) => void world.push(`undone ${result}`) }
        : { businessKey: () => "k", observe: () => outcome.inconclusive("nobody looks") }),
    });
    const run = flow("run", (tape) => tape.effect(slow.with(null)));
    const p = on(s, run, slow as never);
    const id = await p.start(run);
    await p.until(() => world.length > 0);
    await cancelled(s, p, id);
    // Decided or not, the run is not over while its act is under way.
    expect((await s.run(id)).endedAt).toBeNull();
    answer();
    expect((await p.over(id)).status).toBe(status);
    expect(await acts(s, id)).toEqual(["slow CONFIRMED"]);
    expect(await owed(s, id)).toEqual(obligations);
    expect(world).toEqual(seen);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("by the outbox: the run waits for what is sent, then undoes it", async () => {
    const s = await stage();
    const world: string[] = [];
    let answer = (): void => {};
    const slow = effect(
      "slow",
      (_: null) =>
        new Promise<string>((resolve) => {
          world.push("sent");
          answer = () => resolve("receipt");
        }),
      { dispatch: "outbox", compensate: (_, result) => void world.push(`undone ${result}`), timeout: "1h" },
    );
    const run = flow("run", (tape) => tape.effect(slow.with(null)));
    const p = on(s, run, slow as never);
    const id = await p.start(run);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    void p.reactors(); // its outbox stays in the act until that is answered
    while (world.length === 0) await settled(1);
    await s.store.intake.cancel(tenant, id, { reason: "not wanted" });
    await p.worker.runOnce(10);
    expect((await s.run(id)).status).toBe("ENDING");
    answer();
    await settled(10);
    expect((await p.over(id)).status).toBe("COMPENSATED");
    expect(await acts(s, id)).toEqual(["slow CONFIRMED"]);
    expect(world).toEqual(["sent", "undone receipt"]);
  });
});

describe("the loser of a race", () => {
  it.each([
    ["completes: it is settled, and nothing is undone", "completes", "COMPLETED", "DISCHARGED", []],
    ["fails: both are undone, newest first", "fails", "COMPENSATED", "COMPENSATED", ["quick", "slow"]],
    ["is cancelled: likewise", "is cancelled", "COMPENSATED", "COMPENSATED", ["quick", "slow"]],
  ] as const)("of a run that %s", async (_, how, status, obligation, expected) => {
    const s = await stage();
    const undone: string[] = [];
    const answered: string[] = [];
    const made = effect(
      "act",
      (a: string) =>
        s.clock.sleep(a === "slow" ? 500 : 10).then(() => {
          answered.push(a);
          return a;
        }),
      { compensate: (a) => void undone.push(a) },
    );
    let won: string | undefined;
    const race = flow("race", async (tape) => {
      won = await tape.race([tape.effect(made.with("slow")), tape.effect(made.with("quick"))]);
      if (how === "fails") throw new Error(won);
      if (how === "is cancelled") await tape.gate(go);
      return won;
    });
    const p = on(s, race, made as never);
    const id = await p.start(race);
    await p.until(() => won !== undefined);
    expect([won, answered]).toEqual(["quick", ["quick"]]); // the loser is still under way
    if (how === "is cancelled") await s.store.intake.cancel(tenant, id, { reason: "not wanted" });
    expect((await p.over(id)).status).toBe(status);
    expect(await acts(s, id)).toEqual(["act CONFIRMED", "act CONFIRMED"]);
    expect(await owed(s, id)).toEqual([obligation, obligation]);
    expect(undone).toEqual(expected);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });
});

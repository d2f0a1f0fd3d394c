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
const effectsOf = async (s: Stage, run: string): Promise<string[]> =>
  (await s.store.read.effects(tenant, { run, role: "effect" })).map(({ name, status }) => `${name} ${status}`);
const owed = async (s: Stage, run: string): Promise<string[]> =>
  (await s.store.read.effects(tenant, { run, role: "compensation" })).map(({ status }) => status);

async function cancelled(s: Stage, p: Process, id: string): Promise<void> {
  await s.store.intake.cancel(tenant, id, { reason: "not wanted" });
  await p.until(async () => (await s.kinds(id)).includes("notes.taken"));
  await settled(10);
}

describe("an effect confirmed after the cancellation", () => {
  it.each([
    ["is compensated", true, "COMPENSATED", ["COMPENSATED"], ["sent", "reversed receipt"]],
    ["without a compensation is only settled", false, "CANCELLED", [], ["sent"]],
  ] as const)("%s", async (_, compensates, status, obligations, seen) => {
    const s = await stage();
    const world: string[] = [];
    let respond = (): void => {};
    const body = (_: null): Promise<string> =>
      new Promise<string>((resolve) => {
        world.push("sent");
        respond = () => resolve("receipt");
      });
    const slow = effect("slow", body, {
      ...(compensates
        ? { compensate: (_: null, result: string) => void world.push(`reversed ${result}`) }
        : { businessKey: () => "k", observe: () => outcome.inconclusive("unavailable") }),
    });
    const run = flow("run", (tape) => tape.effect(slow.with(null)));
    const p = on(s, run, slow as never);
    const id = await p.start(run);
    await p.until(() => world.length > 0);
    await cancelled(s, p, id);
    // Decided or not, the run does not end while its effect is in progress.
    expect((await s.run(id)).endedAt).toBeNull();
    respond();
    expect((await p.over(id)).status).toBe(status);
    expect(await effectsOf(s, id)).toEqual(["slow CONFIRMED"]);
    expect(await owed(s, id)).toEqual(obligations);
    expect(world).toEqual(seen);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });

  it("by the outbox: the run waits for the outcome, then compensates it", async () => {
    const s = await stage();
    const world: string[] = [];
    let respond = (): void => {};
    const slow = effect(
      "slow",
      (_: null) =>
        new Promise<string>((resolve) => {
          world.push("sent");
          respond = () => resolve("receipt");
        }),
      { dispatch: "outbox", compensate: (_, result) => void world.push(`reversed ${result}`), timeout: "1h" },
    );
    const run = flow("run", (tape) => tape.effect(slow.with(null)));
    const p = on(s, run, slow as never);
    const id = await p.start(run);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    void p.reactors(); // its outbox waits for the response
    while (world.length === 0) await settled(1);
    await s.store.intake.cancel(tenant, id, { reason: "not wanted" });
    await p.worker.runOnce(10);
    expect((await s.run(id)).status).toBe("ENDING");
    respond();
    await settled(10);
    expect((await p.over(id)).status).toBe("COMPENSATED");
    expect(await effectsOf(s, id)).toEqual(["slow CONFIRMED"]);
    expect(world).toEqual(["sent", "reversed receipt"]);
  });
});

describe("the loser of a race", () => {
  it.each([
    ["completes is settled and not compensated", "completes", "COMPLETED", "DISCHARGED", []],
    ["fails is compensated with the winner, newest first", "fails", "COMPENSATED", "COMPENSATED", ["quick", "slow"]],
    ["is cancelled is compensated with the winner", "is cancelled", "COMPENSATED", "COMPENSATED", ["quick", "slow"]],
  ] as const)("of a run that %s", async (_, how, status, obligation, expected) => {
    const s = await stage();
    const compensated: string[] = [];
    const answered: string[] = [];
    const made = effect(
      "book",
      (a: string) =>
        s.clock.sleep(a === "slow" ? 500 : 10).then(() => {
          answered.push(a);
          return a;
        }),
      { compensate: (a) => void compensated.push(a) },
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
    expect([won, answered]).toEqual(["quick", ["quick"]]); // the loser is still in progress
    if (how === "is cancelled") await s.store.intake.cancel(tenant, id, { reason: "not wanted" });
    expect((await p.over(id)).status).toBe(status);
    expect(await effectsOf(s, id)).toEqual(["book CONFIRMED", "book CONFIRMED"]);
    expect(await owed(s, id)).toEqual([obligation, obligation]);
    expect(compensated).toEqual(expected);
    expect(await checkProjection(s.store, [tenant])).toEqual([]);
  });
});

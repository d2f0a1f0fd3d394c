import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { expandKeptRecords } from "../../src/engine/drive/kept-records.ts";
import type { RecordData } from "../../src/model/records.ts";
import { type ForkRequest, fork, planFork } from "../../src/operator/fork.ts";
import type { OperatorDeps } from "../../src/operator/manual-lease.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { NotSent } from "../../src/sdk/outcomes.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { type Process, type Stage, stage, tenant } from "./stage.ts";

const flow = (name: string, run: (tape: TapeContext, input: never) => unknown): AnyWorkflow =>
  workflow(name, run as never) as unknown as AnyWorkflow;
const depsOf = (s: Stage, p: Process, store: Store = s.store): OperatorDeps => ({
  store,
  keeper: p.keeper,
  tenant,
  clock: s.clock,
  random: seededRandom("fork"),
});
const operator = { by: "ada", reason: "the code was wrong" };
const request = (more: Partial<ForkRequest> = {}): ForkRequest => ({ ...operator, id: "copy", ...more });

/** A payment whose booking fails until the code is fixed; `world` lists what has reached the upstream. */
function payment() {
  const world: string[] = [];
  const state = { broken: true, ids: [] as string[] };
  const wire = effect(
    "wire",
    async (a: { amount: number; ref: string }, fx) => {
      world.push(fx.key);
      return `receipt ${a.amount}`;
    },
    { allowUnsafe: "a test" },
  );
  const mail = effect("mail", async (a: { to: string }, fx) => void world.push(`mail ${a.to} ${fx.key}`), {
    semantics: "idempotent",
  });
  const go = gate<number>("go");
  const pay = flow("pay", async (tape) => {
    const plan = await tape.step("plan", () => ({ amount: 5 }));
    const id = tape.uuid();
    state.ids.push(id);
    const [factor] = await Promise.all([tape.gate(go), tape.sleep("1s")]);
    if (factor.status !== "received") throw new Error("no signal");
    const receipt = await tape.effect(wire.with({ amount: plan.amount * factor.value, ref: id }));
    await tape.effect(mail.with({ to: "ann" }));
    await tape.step("book", () => {
      if (state.broken) throw new Error("the books are closed");
      return "booked";
    });
    return { receipt, last: tape.uuid() };
  });
  return { world, state, pay, runner: createRunner({ workflows: [pay], effects: [wire, mail] }) };
}

async function failed(s: Stage, p: Process, pay: AnyWorkflow): Promise<string> {
  const id = await p.start(pay, 1, { id: "first" });
  await s.store.intake.signal(tenant, id, { name: "go", value: 2 });
  expect(await p.over(id)).toMatchObject({ status: "FAILED" });
  return id;
}

describe("a fork", () => {
  it("gets another input on request, which its schema still has to check", async () => {
    const s = await stage();
    const answers: unknown[] = [];
    const ask = flow("ask", async (tape, { message }: { message: string }) => {
      const topic = await tape.step("topic", () => "rain");
      answers.push(await tape.decide("answer", () => `${topic}: ${message}`));
    });
    const p = s.process(createRunner({ workflows: [ask] }));
    const first = await p.start(ask, { message: "will it rain?" }, { id: "first" });
    await p.over(first);
    const id = await fork(depsOf(s, p), first, request({ at: 1, input: { message: "and tomorrow?" } }));
    await p.over(id);
    expect(answers).toEqual(["rain: will it rain?", "rain: and tomorrow?"]);
    const created = async (run: string) => (await s.records(run))[0]!.data as RecordData<"run.created">;
    expect((await created(id)).input).toEqual({ message: "and tomorrow?" });
    expect((await created(id)).checked).toBeUndefined();
    expect((await created(id)).inputHash).not.toBe((await created(first)).inputHash);
  });

  it("keeps the operations before its position, runs the rest again, and leaves the source alone", async () => {
    const s = await stage();
    const { world, state, pay, runner } = payment();
    const p = s.process(runner);
    const first = await failed(s, p, pay);
    const before = await s.records(first);
    state.broken = false;
    const plan = await planFork(depsOf(s, p), first);
    expect(plan).toMatchObject({ at: 5, alreadyHappened: [] });
    expect(plan.kept.map(({ what, name }) => `${what} ${name}`)).toEqual([
      "step plan",
      "gate go",
      expect.stringMatching(/^timer/),
      "effect wire",
      "effect mail",
    ]);
    expect(plan.rerun).toEqual([{ pos: 5, what: "step", name: "book" }]);
    const copy = await fork(depsOf(s, p), first, request());
    const run = await p.over(copy);
    expect(run).toMatchObject({ status: "COMPLETED", outcome: { receipt: "receipt 10" } });
    expect(world).toHaveLength(2); // one wire and one mail, both of the first run
    expect(new Set(state.ids).size).toBe(1); // random values of the kept part are the first run's
    expect((run.outcome as { last: string }).last).not.toBe(state.ids[0]);
    expect(await s.records(first)).toEqual(before);
    const kinds = await s.kinds(copy);
    expect(kinds.slice(0, 4)).toEqual(["run.created", "operator.action", "fork.kept", "term.ended"]);
    expect((await s.records(copy))[1]).toMatchObject({ data: { by: "ada", action: "fork", reason: operator.reason } });
    expect(await s.store.read.effects(tenant, { run: copy })).toEqual([]);
  });

  it("repeats an effect that has happened only if it is named", async () => {
    const s = await stage();
    const { world, state, pay, runner } = payment();
    const p = s.process(runner);
    const first = await failed(s, p, pay);
    state.broken = false;
    const deps = depsOf(s, p);
    expect((await planFork(deps, first, 3)).alreadyHappened).toMatchObject([
      { pos: 3, name: "wire", repeatable: false, args: { amount: 10 } },
      { pos: 4, name: "mail", repeatable: true },
    ]);
    await expect(fork(deps, first, request({ at: 3 }))).rejects.toMatchObject({
      code: "TAPE_FORK_REPEATS",
      details: { positions: [3] },
    });
    expect(await s.store.read.run(tenant, "copy")).toBeUndefined();
    const copy = await fork(deps, first, request({ at: 3, repeat: [3] }));
    expect(await p.over(copy)).toMatchObject({ status: "COMPLETED" });
    expect(world).toHaveLength(4);
    expect(new Set(world).size).toBe(4); // under new keys
  });

  it("names an effect that waits for its next attempt if an earlier one may have happened", async () => {
    const s = await stage();
    const retry = { attempts: 3, base: "1h", cap: "1h" } as const;
    for (const [error, uncertain] of [
      [new Error("the connection broke"), true] as const,
      [new NotSent(), false] as const,
    ]) {
      const put = effect(
        "put",
        (_: null): string => {
          throw error;
        },
        { semantics: "idempotent", dispatch: "outbox", retry },
      );
      const once = workflow("once", () => put(null)) as unknown as AnyWorkflow;
      const p = s.process(createRunner({ workflows: [once], effects: [put] }));
      const id = await p.start(once);
      const row = async () => (await s.store.read.effects(tenant, { run: id }))[0];
      await p.until(async () => typeof (await row())?.reason === "string");
      expect(await row()).toMatchObject({ status: "PENDING", uncertain });
      const { alreadyHappened } = await planFork(depsOf(s, p), id, 0);
      expect(alreadyHappened.map(({ name }) => name)).toEqual(uncertain ? ["put"] : []);
      p.crash();
    }
  });

  it("is rejected if an operation before its position is open", async () => {
    const s = await stage();
    const { pay, runner } = payment();
    const p = s.process(runner);
    const id = await p.start(pay, 1, { id: "waits" });
    await p.until(async () => (await s.run(id)).status === "WAITING");
    const deps = depsOf(s, p);
    expect((await planFork(deps, id)).at).toBe(1);
    await expect(planFork(deps, id, 2)).rejects.toMatchObject({ code: "TAPE_BAD_FORK_POINT", details: { pos: 1 } });
    await expect(planFork(deps, id, 9)).rejects.toMatchObject({ code: "TAPE_BAD_FORK_POINT" });
    await expect(planFork(deps, "missing")).rejects.toMatchObject({ code: "TAPE_RUN_NOT_FOUND" });
  });

  it("gets its kept records from the first drive if the creating process crashed", async () => {
    const s = await stage();
    const { world, state, pay, runner } = payment();
    const p = s.process(runner);
    const first = await failed(s, p, pay);
    state.broken = false;
    const dying: Store = {
      ...s.store,
      fenced: { ...s.store.fenced, append: () => Promise.reject(new Error("the process is gone")) },
    };
    await expect(fork(depsOf(s, p, dying), first, request())).rejects.toThrow("the process is gone");
    expect(await s.kinds("copy")).toEqual(["run.created"]);
    await s.clock.elapse(31_000);
    expect(await p.over("copy")).toMatchObject({ status: "COMPLETED" });
    expect(world).toHaveLength(2);
    expect(await s.kinds("copy")).toContain("fork.kept");
  });

  it("of a fork keeps what that fork kept", async () => {
    const s = await stage();
    const { world, state, pay, runner } = payment();
    const p = s.process(runner);
    const first = await failed(s, p, pay);
    const second = await fork(depsOf(s, p), first, request({ id: "second" }));
    expect(await p.over(second)).toMatchObject({ status: "FAILED" });
    state.broken = false;
    const third = await fork(depsOf(s, p), second, request({ id: "third" }));
    expect(await p.over(third)).toMatchObject({ status: "COMPLETED", outcome: { receipt: "receipt 10" } });
    expect(world).toHaveLength(2);
    expect(expandKeptRecords(await s.records(third)).filter(({ kind }) => kind === "effect.intended")).toHaveLength(2);
    await expect(fork(depsOf(s, p), second, request({ id: "fourth", at: 3 }))).rejects.toMatchObject({
      code: "TAPE_FORK_REPEATS",
    });
  });
});

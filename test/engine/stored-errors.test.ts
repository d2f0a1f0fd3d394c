import { describe, expect, it } from "vitest";
import { decode, encode } from "../../src/base/codec.ts";
import { EffectFailed } from "../../src/engine/effects/inline.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { isTapeError, TapeError } from "../../src/model/errors.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { AckLost, DefiniteFailure, NotSent } from "../../src/sdk/outcomes.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { stage } from "./stage.ts";

const seen = (error: unknown): unknown[] => {
  const { message } = error as Error;
  const own = error instanceof TapeError ? [error.code, error.retry, error.next, error.details] : [];
  const failed = error instanceof EffectFailed ? [error.effect, error.reason] : [];
  return [(error as Error).constructor.name, message, ...own, ...failed];
};

describe("errors from the journal", () => {
  it("keep their class, code, retry and next step", () => {
    const cause = new NotSent("no line", { retryAfterMs: 5 });
    const all = [
      new TapeError("TAPE_BUDGET_EXCEEDED", "too much", { unit: "usd" }, cause),
      new EffectFailed("wire", "definite", new DefiniteFailure("no", { scope: "attempt" })),
      cause,
      new AckLost(),
    ];
    for (const error of all) {
      const back = decode(encode({ deep: [error] })) as { deep: [Error] };
      expect(seen(back.deep[0])).toEqual(seen(error));
      if (error.cause !== undefined) expect(seen(back.deep[0].cause)).toEqual(seen(error.cause));
    }
    expect((decode(encode(cause)) as NotSent).retryAfterMs).toBe(5);
  });

  it("with a code that this version does not know stay plain errors with that code", () => {
    const text = encode(new TapeError("TAPE_BAD_INPUT", "x")).replaceAll("TAPE_BAD_INPUT", "TAPE_FROM_TOMORROW");
    const back = decode(text) as Error & { code: string };
    expect([back instanceof TapeError, isTapeError(back), back.code]).toEqual([false, false, "TAPE_FROM_TOMORROW"]);
  });

  it("have the same class live and on replay", async () => {
    const s = await stage();
    const drives: unknown[][] = [];
    const pay = effect("pay", () => Promise.reject(new DefiniteFailure("no")), {
      businessKey: () => "k",
      compensate: () => {},
    });
    const go = gate("go");
    const caller = workflow("caller", (async (tape: TapeContext) => {
      const caught: unknown[] = [];
      drives.push(caught);
      const keep = async (work: Promise<unknown>) => caught.push(seen(await work.catch((error: unknown) => error)));
      await keep(tape.effect(pay.with(null)));
      await keep(tape.attempt(pay.with(null)).then((result) => (result as { error: unknown }).error));
      await keep(tape.budget.spend({ usd: 1 }, async () => ({ cost: {}, value: 1 })));
      await keep(tape.values.put("k", 1, 7));
      await keep(tape.step("s", () => Promise.reject(new EffectFailed("e", "r", new Error("why")))));
      await tape.gate(go);
      return caught.map((entry) => (entry as string[])[0]);
    }) as never) as unknown as AnyWorkflow;
    const p = s.process(createRunner({ workflows: [caller], effects: [pay] as never }));
    const id = await p.start(caller, null, { budget: { usd: 0 } });
    await p.until(async () => (await s.run(id)).status === "WAITING");
    await s.store.intake.signal("t", id, { name: "go", value: 1 });
    const run = await p.over(id);
    expect(run.outcome).toEqual(["EffectFailed", "DefiniteFailure", "TapeError", "TapeError", "EffectFailed"]);
    expect(drives).toHaveLength(2);
    expect(drives[1]).toEqual(drives[0]);
  });
});

describe("result()", () => {
  const wire = effect("wire", () => Promise.reject(new AckLost()), { compensate: () => {} });
  const pay = workflow("pay", (tape) => tape.effect(wire.with(null)));
  const runner = createRunner({ workflows: [pay], effects: [wire] });

  it("of a STUCK run says why and what to do, and resolves after the effect is resolved", async () => {
    await using app = await VirtualTape.open({ runner });
    const run = await app.start(pay, null, { id: "pay-1" });
    const error: unknown = await app.time.during(run.result().catch((thrown: unknown) => thrown));
    expect(isTapeError(error, "TAPE_RUN_STUCK") && error.message).toMatch(
      /run pay-1 needs an operator: the outcome of wire at position 0 is unknown \(unobservable; the last attempt failed with: .*\): .* resolve it as/,
    );
    const resolution = { as: "confirmed", value: "seen" } as const;
    const request = { run: "pay-1", pos: 0, resolution, by: "ada", reason: "asked the bank" };
    await app.time.during(app.tape.resolve(request));
    expect(await app.time.during(run.result())).toBe("seen");
  });

  it("rejects with TAPE_NO_WORKER in a process that has the workflow but no worker", async () => {
    const clock = new VirtualTime();
    const store = await clock.during(openStore("memory:", { clock }));
    const app = await clock.during(Tape.open({ store, runner, clock, work: false }));
    const run = await clock.during(app.start(pay, null));
    await expect(clock.during(run.result())).rejects.toMatchObject({ code: "TAPE_NO_WORKER" });
    await clock.during(app.close());
    await clock.during(store.close());
  });
});

import { describe, expect, it } from "vitest";
import type { TapeContext } from "../../src/sdk/context.ts";
import { current } from "../../src/sdk/current.ts";
import { type Effect, effect } from "../../src/sdk/effect.ts";
import { gate } from "../../src/sdk/gate.ts";
import { AckLost, DefiniteFailure, NotSent, outcome } from "../../src/sdk/outcomes.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import { settled } from "../../testkit/clock.ts";
import { type Process, type Stage, stage, tenant, ttlMs, watched } from "./stage.ts";

const go = gate("go");
const flow = (name: string, run: (tape: TapeContext, input: never) => unknown, more: object = {}): AnyWorkflow =>
  workflow(name, run as never, more) as unknown as AnyWorkflow;
const with_ = (flows: AnyWorkflow[], ...effects: Effect<never, unknown>[]) =>
  createRunner({ workflows: flows, effects: effects as never });
const statuses = async (s: Stage, run: string) =>
  (await s.store.read.effects(tenant, { run })).map(({ status }) => status);

async function runOf(
  made: Effect<never, unknown>,
  args: unknown = { n: 1 },
): Promise<{ s: Stage; p: Process; id: string }> {
  const s = await stage();
  const caller = flow("caller", (tape) => tape.attempt(made.with(args as never)));
  const p = s.process(with_([caller], made));
  return { s, p, id: await p.start(caller) };
}

describe("inline effects", () => {
  it("[INV-13] intent and dispatch are durable before the body runs; an effect takes two commits", async () => {
    const s = await stage();
    const appends: (readonly string[])[] = [];
    const inside: string[][] = [];
    const pay = effect(
      "pay",
      async (_: { n: number }, fx) => {
        inside.push(await s.kinds(fx.runId));
        return fx.key;
      },
      { compensate: () => {} },
    );
    const two = flow("two", async (tape) => {
      await tape.step("a", () => 1);
      return pay({ n: 1 });
    });
    const p = s.process(with_([two], pay as never), { store: watched(s.store, (kinds) => void appends.push(kinds)) });
    const id = await p.start(two);
    expect((await p.over(id)).outcome).toBe(`${id}:1`);
    expect(inside).toEqual([["run.created", "step.done", "effect.intended", "effect.dispatched"]]);
    expect(appends).toEqual([
      ["step.done"],
      ["effect.intended", "effect.dispatched"],
      ["effect.settled", "obligation.armed"],
      ["run.ended"],
    ]);
    const [row] = await s.store.read.effects(tenant, { run: id, role: "effect" });
    expect([row!.status, row!.attemptToken, row!.key]).toEqual(["CONFIRMED", 1n, `${id}:1`]);
  });

  it("a time sampled right before the end does not delay it", async () => {
    const s = await stage();
    const now = flow("now", (tape) => Promise.resolve(tape.now()));
    const p = s.process([now]);
    const id = await p.start(now);
    await settled(20);
    expect((await s.run(id)).outcome).toBe(s.clock.wall());
  });

  it("an effect that is not awaited is finished before the run ends", async () => {
    const s = await stage();
    let done = 0;
    const pay = effect("pay", async (_: null) => void done++, { compensate: () => {} });
    const forget = flow("forget", async () => {
      void pay(null);
    });
    const p = s.process(with_([forget], pay as never));
    const id = await p.start(forget);
    expect((await p.over(id)).status).toBe("COMPLETED");
    expect([done, await statuses(s, id)]).toEqual([1, ["CONFIRMED", "DISCHARGED"]]);
  });

  it("NotSent is retried by policy, then the effect has failed", async () => {
    let tries = 0;
    const seen = new Set<string>();
    const made = effect(
      "send",
      async (_: { n: number }, fx) => {
        seen.add(fx.key);
        if (++tries < 3) throw new NotSent();
        return tries;
      },
      { compensate: () => {}, retry: { attempts: 3, base: "1s" } },
    );
    const { p, id } = await runOf(made as never);
    expect((await p.over(id)).outcome).toEqual({ status: "confirmed", value: 3 });
    expect(seen.size).toBe(1);
    tries = -9;
    const again = await runOf(made as never);
    expect((await again.p.over(again.id)).outcome).toMatchObject({ status: "failed", reason: "not_sent" });
  });

  it.each([
    ["DefiniteFailure", new DefiniteFailure("no"), {}],
    ["declared", new RangeError("no"), { isDefinite: (error: unknown) => error instanceof RangeError }],
  ])("a failure that is %s is FAILED at once", async (_, error, more) => {
    let tries = 0;
    const made = effect(
      "send",
      (_: { n: number }) => {
        tries++;
        return Promise.reject(error);
      },
      {
        compensate: () => {},
        ...more,
      },
    );
    const { s, p, id } = await runOf(made as never);
    expect((await p.over(id)).outcome).toMatchObject({
      status: "failed",
      reason: "definite",
      error: { message: "no" },
    });
    expect([tries, await statuses(s, id)]).toEqual([1, ["FAILED"]]);
  });

  it("after a lost response an idempotent effect or a read is sent again under its key", async () => {
    for (const semantics of ["idempotent", "read"] as const) {
      const keys: string[] = [];
      const made = effect(
        semantics,
        async (_: { n: number }, fx) => {
          keys.push(`${fx.key} ${fx.attempt}`);
          if (keys.length === 1) throw new AckLost();
          return 1;
        },
        { semantics, retry: { base: "1s" } },
      );
      const { p, id } = await runOf(made as never);
      expect((await p.over(id)).outcome).toMatchObject({ status: "confirmed" });
      expect(keys).toEqual([`${id}:0 1`, `${id}:0 2`]);
    }
  });

  it("a non_idempotent effect that lost its response is UNKNOWN, observed, and not sent again", async () => {
    let sent = 0;
    const made = effect(
      "wire",
      (_: { n: number }) => {
        sent++;
        return Promise.reject(new Error("reset"));
      },
      {
        businessKey: (a) => String(a.n),
        observe: () => outcome.confirmed("found"),
      },
    );
    const { s, p, id } = await runOf(made as never);
    await settled(30);
    expect([(await s.run(id)).status, await statuses(s, id)]).toEqual(["WAITING", ["UNKNOWN"]]);
    expect(p.keeper.leases).toEqual([]);
    expect((await p.over(id)).outcome).toEqual({ status: "confirmed", value: "found" });
    expect(sent).toBe(1);
  });

  it("after a time-out the effect is UNKNOWN, and a late response is evidence", async () => {
    let respond = (_: string): void => {};
    const made = effect("slow", (_: { n: number }) => new Promise<string>((resolve) => (respond = resolve)), {
      timeout: "5s",
      compensate: () => {},
    });
    const { s, p, id } = await runOf(made as never);
    await settled(20);
    await s.clock.elapse(5_001);
    await settled(20);
    expect(await statuses(s, id)).toEqual(["UNKNOWN"]);
    respond("late");
    await settled(20);
    expect((await p.over(id)).outcome).toEqual({ status: "confirmed", value: "late" });
  });

  it("[INV-17] a driver that loses its lease during an effect leaves the result as evidence", async () => {
    const s = await stage();
    let respond = (_: string): void => {};
    let sent = 0;
    const made = effect(
      "wire",
      (_: null) => {
        sent++;
        return new Promise<string>((resolve) => (respond = resolve));
      },
      { compensate: () => {} },
    );
    const caller = flow("caller", (tape) => tape.effect(made.with(null)));
    const one = s.process(with_([caller], made as never));
    const id = await one.start(caller);
    await settled(20);
    s.clock.stall(ttlMs + 1); // the process stalls, and gets its response after its lease has expired
    respond("late");
    await settled(20);
    const view = await s.process(with_([caller], made as never)).over(id);
    expect([view.status, view.outcome, sent]).toEqual(["COMPLETED", "late", 1]);
    expect(s.logged.some(({ event }) => event === "effect.evidence_recorded")).toBe(true);
    expect((await s.kinds(id)).filter((kind) => kind === "effect.dispatched")).toHaveLength(1);
  });

  it("[INV-14] after a crash during an effect it is UNKNOWN, observed, and never sent again", async () => {
    const s = await stage();
    let sent = 0;
    const made = effect("wire", (_: null) => (sent++ === 0 ? one.crash() : undefined) ?? new Promise(() => {}), {
      businessKey: () => "k",
      observe: () => outcome.confirmed("found"),
    });
    const caller = flow("caller", (tape) => tape.effect(made.with(null)));
    const runner = with_([caller], made as never);
    const one: Process = s.process(runner);
    const id = await one.start(caller);
    await settled(20);
    await s.clock.elapse(ttlMs + 1);
    const two = s.process(runner);
    await two.worker.runOnce(10);
    expect([await statuses(s, id), (await s.run(id)).status]).toEqual([["UNKNOWN"], "WAITING"]);
    expect([(await two.over(id)).outcome, sent]).toEqual(["found", 1]);
  });

  it("an interrupted idempotent attempt is sent again and does not count", async () => {
    const s = await stage();
    let one: Process | undefined;
    let tries = 0;
    const made = effect(
      "put",
      async (_: null, fx) => {
        if (++tries <= 3) {
          one!.crash();
          await new Promise(() => {});
        }
        return fx.attempt;
      },
      { semantics: "idempotent", retry: { attempts: 1 } },
    );
    const caller = flow("caller", (tape) => tape.effect(made.with(null)));
    one = s.process(with_([caller], made as never));
    const id = await one.start(caller);
    for (let k = 0; k < 3; k++) {
      await settled(20);
      await s.clock.elapse(ttlMs + 1);
      one = s.process(with_([caller], made as never));
      void one.worker.runOnce(10);
      await settled(30);
    }
    expect((await one.over(id)).outcome).toBe(4);
  });

  it("an effect whose result cannot be stored is confirmed and owed, and the code gets the error", async () => {
    const s = await stage();
    const compensated: unknown[] = [];
    const made = effect("odd", (_: null) => Promise.resolve((() => 1) as unknown), {
      compensate: (_a, result) => void compensated.push(result),
    });
    const caller = flow("caller", (tape) => tape.effect(made.with(null)));
    const p = s.process(with_([caller], made as never));
    const id = await p.start(caller);
    const view = await p.over(id);
    expect([view.status, (view.outcome as { code: string }).code]).toEqual(["COMPENSATED", "TAPE_NOT_ENCODABLE"]);
    expect(compensated).toEqual([undefined]);
  });

  it("arguments are copied when the call is made, so that what is approved is sent", async () => {
    const s = await stage();
    const sent: unknown[] = [];
    const pay = effect("pay", (a: { n: number }) => void sent.push(a.n), { semantics: "idempotent" });
    const sly = flow("sly", async (tape) => {
      const args = { n: 1 };
      const call = pay.with(args);
      args.n = 1_000;
      await tape.effect(call);
    });
    const p = s.process(with_([sly], pay as never));
    await p.over(await p.start(sly));
    expect(sent).toEqual([1]);
  });

  it("a taken business key is an error that names the owning run, live and on replay", async () => {
    const s = await stage();
    const errors: string[] = [];
    const pay = effect("pay", (a: { k: string }) => a.k, {
      businessKey: (a) => a.k,
      observe: () => outcome.absent(),
    });
    const first = flow("first", (tape) => tape.effect(pay.with({ k: "inv" })));
    const second = flow("second", async (tape) => {
      await tape
        .effect(pay.with({ k: "inv" }))
        .catch((e: Error & { code: string }) => errors.push(`${e.code} ${e.message}`));
      await tape.gate(go);
    });
    const runner = with_([first, second], pay as never);
    const p = s.process(runner);
    await p.over(await p.start(first, null, { id: "owner" }));
    const id = await p.start(second);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    await s.store.intake.signal(tenant, id, { name: "go", value: 1 });
    expect((await p.over(id)).status).toBe("COMPLETED");
    expect(errors).toHaveLength(2);
    expect(errors[1]).toBe(errors[0]);
    expect(errors[0]).toMatch(/^TAPE_BUSINESS_KEY_TAKEN .*belongs to run owner/);
  });

  it("current() is the run's context in code that does not receive it, and throws outside a run", async () => {
    const s = await stage();
    const library = async (): Promise<unknown> => {
      await settled();
      return current().step("in a library", () => current().runId);
    };
    const caller = flow("caller", () => Promise.all([library(), current().runId]));
    const p = s.process([caller]);
    const id = await p.start(caller);
    expect((await p.over(id)).outcome).toEqual([id, id]);
    expect(() => current()).toThrow(/TAPE_NO_RUN/);
  });

  it("an effect needs a run, and an unsafe one cannot be defined", async () => {
    const pay = effect("pay", (_: null) => 1, { semantics: "idempotent" });
    await expect(pay(null)).rejects.toMatchObject({ code: "TAPE_NO_RUN" });
    expect(() => effect("wire", (_: null) => 1)).toThrow(/TAPE_UNSAFE_EFFECT/);
    expect(() => effect("wire", (_: null) => 1, { businessKey: () => "k" })).toThrow(/TAPE_UNSAFE_EFFECT/);
    expect(() => effect("wire", (_: null) => 1, { allowUnsafe: "a test" })).not.toThrow();
    expect(() => pay.with((() => 1) as never)).toThrow(/TAPE_NOT_ENCODABLE/);
  });

  it("the outbox sends while the run holds no lease", async () => {
    const s = await stage();
    const send = effect("send", (a: { n: number }) => a.n + 1, { dispatch: "outbox", compensate: () => {} });
    const caller = flow("caller", (tape) => tape.effect(send.with({ n: 1 })));
    const p = s.process(with_([caller], send as never));
    const id = await p.start(caller);
    await settled(20);
    expect([(await s.run(id)).status, p.keeper.leases.length]).toEqual(["WAITING", 0]);
    expect((await p.over(id)).outcome).toBe(2);
  });

  it("the loser of a race is settled, and compensated only if the run fails", async () => {
    for (const fails of [false, true]) {
      const s = await stage();
      const compensated: unknown[] = [];
      const made = effect("book", (a: string) => s.clock.sleep(a === "slow" ? 500 : 10).then(() => a), {
        compensate: (a) => void compensated.push(a),
      });
      const race = flow("race", async (tape) => {
        const won = await tape.race([tape.effect(made.with("slow")), tape.effect(made.with("quick"))]);
        if (fails) throw new Error(won);
        return won;
      });
      const p = s.process(with_([race], made as never));
      const id = await p.start(race);
      const view = await p.over(id);
      expect(view.status).toBe(fails ? "COMPENSATED" : "COMPLETED");
      const rows = await s.store.read.effects(tenant, { run: id, role: "effect" });
      expect(rows.map(({ status }) => status)).toEqual(["CONFIRMED", "CONFIRMED"]);
      expect(compensated).toEqual(fails ? ["quick", "slow"] : []);
      expect(s.logged.filter(({ event }) => event.startsWith("effect.evidence"))).toEqual([]);
    }
  });
});

describe("runs", () => {
  it("the same id and input give the same run; another input is a conflict", async () => {
    const s = await stage();
    let calls = 0;
    const once = flow("once", (tape) => tape.step("a", () => ++calls));
    const p = s.process([once]);
    await p.over(await p.start(once, 1, { id: "x" }));
    await p.start(once, 1, { id: "x" });
    await settled(20);
    expect(calls).toBe(1);
    await expect(p.start(once, 2, { id: "x" })).rejects.toMatchObject({ code: "TAPE_RUN_CONFLICT" });
  });

  it("a run that throws is retried as declared, without the failures that the code handled", async () => {
    const s = await stage();
    const calls: string[] = [];
    const again = flow(
      "again",
      async (tape) => {
        await tape
          .step("caught", () => {
            calls.push("caught");
            throw new Error("x");
          })
          .catch(() => {});
        await tape.step("fine", () => void calls.push("fine"));
        await tape
          .step("flaky", () => {
            calls.push("flaky");
            if (calls.filter((c) => c === "flaky").length < 3) throw new Error("not yet");
          })
          .catch((cause: unknown) => {
            throw new Error("wrapped", { cause });
          });
        return "ok";
      },
      { retry: { attempts: 3, base: "1s" } },
    );
    const p = s.process([again]);
    const id = await p.start(again);
    const view = await p.over(id);
    expect([view.status, view.outcome]).toEqual(["COMPLETED", "ok"]);
    expect(calls).toEqual(["caught", "fine", "flaky", "flaky", "flaky"]);
    const failing = flow("failing", (tape) => tape.step("a", () => Promise.reject(new Error("always"))), {
      retry: { attempts: 2, base: "1s" },
    });
    const q = s.process([failing]);
    expect((await q.over(await q.start(failing))).outcome).toMatchObject({ message: "always" });
  });

  it("a run that fails in one of several steps ends at once", async () => {
    const s = await stage();
    const both = flow("both", (tape) =>
      Promise.all([
        tape.step("bad", () => Promise.reject(new Error("bad"))),
        ...Array.from({ length: 20 }, (_, k) => tape.step(`s${k}`, () => settled(k % 4))),
      ]),
    );
    const p = s.process([both]);
    const id = await p.start(both);
    await settled(60);
    expect((await s.run(id)).status).toBe("FAILED");
  });
});

describe("budgets and values", () => {
  it("parallel spends stay within the cap, and cancelled reservations are released", async () => {
    const s = await stage();
    const spend = flow("spend", async (tape) => {
      const each = () =>
        tape.budget.spend({ usd: 1 }, async () => ({ cost: { usd: 1 }, value: await tape.step("buy", () => 1) }));
      const all = await Promise.allSettled([each(), each(), each(), each()]);
      const codes = all.map((end) => (end.status === "fulfilled" ? "ok" : (end.reason as { code: string }).code));
      await tape.gate(go);
      return codes;
    });
    const p = s.process([spend]);
    const id = await p.start(spend, null, { budget: { usd: 2_000_000 } });
    await p.until(async () => (await s.run(id)).status === "WAITING");
    await s.store.intake.signal(tenant, id, { name: "go", value: 1 });
    const ends = ["TAPE_BUDGET_EXCEEDED", "TAPE_BUDGET_EXCEEDED", "ok", "ok"];
    expect(((await p.over(id)).outcome as string[]).toSorted()).toEqual(ends);
    expect(await s.store.read.budgets(tenant, id)).toMatchObject([{ spent: 2_000_000, reserved: 0 }]);

    const child = flow("child", (tape) =>
      tape.budget.spend({ usd: 1 }, async () => ({ cost: {}, value: await tape.gate(go) })),
    );
    const parent = flow("parent", async (tape) => void (await tape.spawn(child as never, null as never)));
    const q = s.process([parent, child]);
    const root = await q.start(parent, null, { budget: { usd: 2_000_000 } });
    expect((await q.over(root)).status).toBe("COMPLETED");
    expect(await s.store.read.budgets(tenant, root)).toMatchObject([{ spent: 0, reserved: 0 }]);
  });

  it("the code sees a lost compare-and-set, live and on replay", async () => {
    const s = await stage();
    const seen: unknown[] = [];
    const put = flow("put", async (tape) => {
      seen.push(await tape.values.put("k", { a: 1 }, 0));
      seen.push(await tape.values.put("k", { a: 2 }, 0).catch((error: { code: string }) => error.code));
      seen.push(await tape.values.get("k"));
      await tape.gate(go);
    });
    const p = s.process([put]);
    const id = await p.start(put);
    await p.until(async () => (await s.run(id)).status === "WAITING");
    await s.store.intake.putValue(tenant, "k", "changed", "unconditional");
    await s.store.intake.signal(tenant, id, { name: "go", value: 1 });
    await p.over(id);
    expect(seen.slice(0, 3)).toEqual([1, "TAPE_VERSION_CONFLICT", { version: 1, value: { a: 1 } }]);
    expect(seen.slice(3)).toEqual(seen.slice(0, 3));
  });
});

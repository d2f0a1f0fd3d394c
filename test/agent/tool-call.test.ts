import { describe, expect, it, onTestFinished } from "vitest";
import { toolApproval } from "../../src/agent/approval.ts";
import { type DurableTool, durableTool, type ToolOutcome } from "../../src/agent/tool-call.ts";
import type { AnyToolPolicy } from "../../src/agent/tool-policy.ts";
import { TapeError } from "../../src/model/errors.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { AckLost, DefiniteFailure, outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";
import { assistant, ScriptedModel, user } from "./scripted.ts";

/** A bank that pays once per call, and knows what it has paid. */
class Bank {
  readonly paid: string[] = [];
  lose = 0;

  pay({ invoice }: { invoice: string }): { receipt: string } {
    this.paid.push(invoice);
    if (this.lose-- > 0) throw new AckLost();
    return { receipt: `r-${invoice}` };
  }

  readonly policy = {
    businessKey: ({ invoice }: { invoice: string }) => invoice,
    observe: ({ invoice }: { invoice: string }) =>
      this.paid.includes(invoice) ? outcome.confirmed({ receipt: `r-${invoice}` }) : outcome.absent(),
    settleDelay: "1s",
  } as const;

  tool(more: AnyToolPolicy = {}): DurableTool {
    return durableTool("bank", "pay", (input: { invoice: string }) => this.pay(input), { ...this.policy, ...more });
  }
}

async function opened<T>(
  tools: readonly DurableTool[],
  run: (tape: TapeContext) => Promise<T>,
): Promise<{
  tape: VirtualTape;
  begin: () => Promise<string>;
  start: () => Promise<{ outcome: unknown; status: string }>;
}> {
  const flow = workflow("flow", run);
  const effects = tools.flatMap(({ effect }) => (effect === undefined ? [] : [effect]));
  const tape = await VirtualTape.open({ runner: createRunner({ workflows: [flow], effects }), log: "silent" });
  onTestFinished(() => tape.close());
  let started = 0;
  const begin = async (): Promise<string> => (await tape.start(flow, undefined, { id: `run-${++started}` })).id;
  return {
    tape,
    begin,
    start: async () => {
      const id = await begin();
      const view = (await tape.settle()).find((one) => one.id === id)!;
      return { outcome: view.outcome, status: view.status };
    },
  };
}

describe("a tool", () => {
  it("is an effect with the id of its call in the arguments", async () => {
    const bank = new Bank();
    const pay = bank.tool();
    const { tape, start } = await opened([pay], () => pay.call({ call: "c1", input: { invoice: "7" } }));
    expect((await start()).outcome).toEqual({ ok: true, value: { receipt: "r-7" } });
    const [row] = await tape.store.read.effects(tape.tape.tenant);
    expect(row).toMatchObject({ name: "bank.pay", status: "CONFIRMED" });
    const journal = await tape.store.read.journal(tape.tape.tenant, { run: "run-1" });
    const intended = journal.find(({ kind }) => kind === "effect.intended")!.data;
    expect(intended).toMatchObject({ args: { call: "c1", input: { invoice: "7" } }, businessKey: "7" });
    expect(journal.find(({ kind }) => kind === "lane.opened")!.data).toMatchObject({ name: "/bank.pay c1" });
  });

  it("whose response is lost is observed, not repeated", async () => {
    const bank = new Bank();
    bank.lose = 1;
    const pay = bank.tool();
    const { start } = await opened([pay], () => pay.call({ call: "c1", input: { invoice: "7" } }));
    expect((await start()).outcome).toEqual({ ok: true, value: { receipt: "r-7" } });
    expect(bank.paid).toEqual(["7"]);
  });

  it.each([
    ["refused", new DefiniteFailure("no funds"), "no funds"],
    ["an error of a tool without a policy", new Error("no such file"), "no such file"],
  ])("that fails becomes words: %s", async (_name, thrown, words) => {
    const tool = durableTool("disk", "read", () => {
      throw thrown;
    });
    const { start } = await opened([tool], () => tool.call({ call: "c1", input: {} }));
    const { outcome: found, status } = await start();
    expect(status).toBe("COMPLETED");
    expect(found).toMatchObject({ ok: false, status: "failed", words: expect.stringContaining(words) });
  });

  it("requested again with the same business key answers with what the first call came to", async () => {
    const bank = new Bank();
    const pay = bank.tool();
    const request = (call: string) => pay.call({ call, input: { invoice: "7" } });
    const { start } = await opened([pay], async () => [await request("c1"), await request("c2")]);
    const result = { ok: true, value: { receipt: "r-7" } };
    expect((await start()).outcome).toEqual([result, result]);
    expect((await start()).outcome).toEqual([result, result]); // another run observes it
    expect(bank.paid).toEqual(["7"]);
  });

  it("is called concurrently in lanes of its own, also with one id", async () => {
    const tool = durableTool("math", "add", ({ a }: { a: number }) => a + 1, { semantics: "read" });
    const { start } = await opened([tool], () =>
      Promise.all([1, 2, 3].map((a) => tool.call({ call: a < 3 ? "same" : "x".repeat(600), input: { a } }))),
    );
    expect((await start()).outcome).toEqual([2, 3, 4].map((value) => ({ ok: true, value })));
  });

  it("stores what it can of any result", async () => {
    class Money {
      readonly #cents = 5;
      toJSON(): unknown {
        return { cents: this.#cents };
      }
    }
    const results: [unknown, unknown][] = [
      [new Money(), { cents: 5 }],
      [Response.json({ a: 1 }, { status: 201 }), { status: 201, ok: true, body: { a: 1 } }],
      [new Response("no", { status: 404 }), { status: 404, ok: false, body: "no" }],
      [new ReadableStream(), { done: true, note: "the result is a stream, which is not stored" }],
      [undefined, undefined],
      [new Uint8Array([1, 2]), new Uint8Array([1, 2])],
      [new Date(5), new Date(5)],
      ["x".repeat(5 * 1024 * 1024), { done: true, note: expect.stringContaining("5242882 bytes") }],
    ];
    let next = 0;
    const tool = durableTool("any", "thing", () => results[next++]![0], { allowUnsafe: "a test" });
    const { start } = await opened([tool], async () => {
      const found: ToolOutcome[] = [];
      for (let k = 0; k < results.length; k++) found.push(await tool.call({ call: `c${k}`, input: {} }));
      return found;
    });
    expect((await start()).outcome).toEqual(results.map(([, value]) => ({ ok: true, value })));
  });

  it("without a policy is refused in strict mode", () => {
    const make = (policy?: AnyToolPolicy) => () => durableTool("a", "b", () => 1, policy, { strict: true });
    expect(make()).toThrow(/TAPE_UNSAFE_EFFECT: tool a.b has no policy/);
    expect(make({ approve: true })).toThrow(/TAPE_UNSAFE_EFFECT/);
    expect(make({ semantics: "read" })().effect).toBeDefined();
    expect(make({ local: true })().effect).toBeUndefined();
    expect(make({ aprove: true } as never)).toThrow(/did you mean approve/);
    expect(make({ approve: "always" } as never)).toThrow(/approve is true, false/);
  });
});

describe("an approval", () => {
  const binds = async (tape: VirtualTape): Promise<(string | null)[]> =>
    (await tape.store.read.gates(tape.tape.tenant, { open: true })).map((gate) => gate.binds);

  it("is for one call: the same input needs another one", async () => {
    const bank = new Bank();
    const pay = durableTool("bank", "pay", (input: { invoice: string }) => bank.pay(input), {
      allowUnsafe: "a test",
      approve: true,
    });
    const { tape, start } = await opened([pay], async () => {
      const first = await pay.call({ call: "c1", input: { invoice: "7" } });
      return [first, await pay.call({ call: "c2", input: { invoice: "7" } })];
    });
    await start();
    expect(bank.paid).toEqual([]);
    const [first] = await binds(tape);
    const approve = { approved: true };
    await tape.time.during(tape.tape.signal("run-1", toolApproval, approve, { binds: first! }));
    await tape.settle();
    expect(bank.paid).toEqual(["7"]);
    const [second] = await binds(tape);
    expect(second).not.toBe(first);
    const stale = tape.time.during(
      tape.tape.signal("run-1", toolApproval, approve, { binds: first!, mustMatch: true }),
    );
    await expect(stale).rejects.toMatchObject({ code: "TAPE_GATE_STALE" });
    await tape.time.during(tape.tape.signal("run-1", toolApproval, approve, { binds: second! }));
    const [view] = await tape.settle();
    expect(view!.status).toBe("COMPLETED");
    expect(bank.paid).toEqual(["7", "7"]);
  });

  it("the framework's own rule is evaluated once, and replay uses its answer", async () => {
    const bank = new Bank();
    const pay = bank.tool({ approve: "framework" });
    let calls = 0;
    const approve = (): boolean => ++calls === 1;
    const { tape, start } = await opened([pay], () => pay.call({ call: "c1", input: { invoice: "7" }, approve }));
    expect((await start()).status).toBe("WAITING");
    await tape.signal("run-1", toolApproval, { approved: true });
    expect((await tape.settle())[0]!.outcome).toMatchObject({ ok: true });
    expect([calls, bank.paid]).toEqual([1, ["7"]]);
  });

  it.each([
    ["denied", { approved: false, reason: "not today" }, "denied", "the call was denied: not today"],
    ["timed out", undefined, "not approved", "the call was not approved in time, so nothing was done"],
  ])("that is %s becomes words", async (_name, answer, status, words) => {
    const bank = new Bank();
    const pay = bank.tool({ approve: ({ invoice }: { invoice: string }) => invoice === "7", approvalTimeout: "1d" });
    const { tape, start, begin } = await opened([pay], async () => [
      await pay.call({ call: "c0", input: { invoice: "6" } }),
      await pay.call({ call: "c1", input: { invoice: "7" }, why: "the customer wants it" }),
    ]);
    if (answer === undefined) expect((await start()).status).toBe("COMPLETED");
    else {
      await begin();
      await tape.elapse(1_000);
      const [gate] = await tape.store.read.gates(tape.tape.tenant, { open: true });
      expect(JSON.parse(gate!.payload!)).toEqual({
        tool: "bank.pay",
        input: { invoice: "7" },
        call: "c1",
        why: "the customer wants it",
      });
      await tape.signal("run-1", toolApproval, answer);
    }
    const [view] = await tape.settle();
    expect(view!.outcome).toMatchObject([{ ok: true }, { ok: false, status, words }]);
    expect(bank.paid).toEqual(["6"]);
  });
});

describe("a tool in doubt", () => {
  it("is reported to the model, and the same call is refused until it is settled", async () => {
    let visible = false;
    const paid: string[] = [];
    const pay = durableTool(
      "bank",
      "pay",
      ({ invoice }: { invoice: string }) => {
        paid.push(invoice);
        throw new AckLost();
      },
      {
        businessKey: ({ invoice }: { invoice: string }) => invoice,
        observe: () => (visible ? outcome.confirmed({ receipt: "late" }) : outcome.inconclusive("not yet")),
        onUnknown: "report",
        reportAfter: "1m",
      },
    );
    const { start } = await opened([pay], async (tape) => {
      const request = (call: string) => pay.call({ call, input: { invoice: "7" } });
      const [first, second] = [await request("c1"), await request("c2")];
      visible = true;
      await tape.sleep("2h");
      return [first, second, await request("c3")];
    });
    const { outcome: found, status } = await start();
    expect(status).toBe("COMPLETED");
    expect(found).toMatchObject([
      { ok: false, status: "unknown", words: expect.stringContaining("unknown whether this happened") },
      { ok: false, status: "unknown", words: expect.stringContaining("refused until") },
      { ok: true, value: { receipt: "late" } },
    ]);
    expect(paid).toEqual(["7"]);
  });
});

describe("control errors", () => {
  it("of a sub-agent end the agent at its next model call, and are never words", async () => {
    const model = new ScriptedModel(() => assistant("yes"));
    const spent = (): never => {
      throw new TapeError("TAPE_BUDGET_EXCEEDED", "the sub-agent needs too much");
    };
    const sub = durableTool("team", "expert", spent, { local: true });
    const agent = async (): Promise<unknown> => {
      await model.ask([user("one")]);
      await sub.call({ call: "c1", input: {} }).catch(() => "a framework turns this into words");
      return await model.ask([user("two")]);
    };
    const { start } = await opened([sub], agent);
    const { outcome: found } = await start();
    expect(found).toMatchObject({ code: "TAPE_BUDGET_EXCEEDED" });
    expect(model.calls).toBe(1);
  });
});

import { ToolLoopAgent, tool } from "ai";
import { ToolLoopAgent as ToolLoopAgent6, tool as tool6 } from "ai-6";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { toolApproval } from "../../src/agent/approval.ts";
import { withApprovals } from "../../src/ai/approvals.ts";
import { durableModel } from "../../src/ai/model.ts";
import { asTool, durableTools } from "../../src/ai/tools.ts";
import { workflow } from "../../src/sdk/workflow.ts";
import type { VirtualTape } from "../../testkit/kit/virtual-tape.ts";
import { opened, ran, settled } from "./ran.ts";
import { type Script, ScriptedLanguageModel } from "./scripted-model.ts";

/** Calls the tool once per call, then repeats what it has received. */
const calling =
  (...calls: { id: string; tool: string; input: unknown }[]): Script =>
  (turn, prompt) => {
    if (turn <= calls.length) return { calls: [calls[turn - 1]!] };
    const results = prompt.filter(({ role }) => role === "tool").flatMap(({ content }) => content as object[]);
    const outputs = results.flatMap((part) => ("output" in part ? [part.output] : []));
    return { text: JSON.stringify(outputs) };
  };

const pay = { id: "c1", tool: "pay", input: { amount: 5 } };
const inputSchema = z.object({ amount: z.number() });

async function answer(tape: VirtualTape, value: { approved: boolean; reason?: string }): Promise<number> {
  const open = await tape.time.during(tape.tape.gates.list({ run: "run" }));
  for (const { binds } of open) {
    await tape.time.during(tape.tape.signal("run", toolApproval, value, { binds, mustMatch: true }));
  }
  return open.length;
}

describe("durable tools", () => {
  it("pass on what the SDK gives, and the last value that a tool yields", async () => {
    const seen: unknown[] = [];
    const slow = tool({
      inputSchema,
      async *execute({ amount }: { amount: number }, { toolCallId, messages, abortSignal }) {
        seen.push([toolCallId, messages.length, abortSignal !== undefined]);
        yield { preliminary: amount };
        yield { paid: amount };
      },
    });
    const kit = durableTools("bank", { pay: slow }, { pay: { allowUnsafe: "a test" } });
    const agent = new ToolLoopAgent({
      model: durableModel(new ScriptedLanguageModel("v4", calling(pay))),
      tools: kit.tools,
    });
    const { outcome } = await ran(async () => (await agent.generate({ prompt: "go" })).text, kit);
    expect(JSON.parse(outcome as string)).toEqual([{ type: "json", value: { paid: 5 } }]);
    expect(seen).toEqual([["c1", 1, true]]);
  });

  it("give the model the words of an error, and leave tools without execute alone", async () => {
    const failing = tool({
      inputSchema,
      execute: async (): Promise<string> => {
        throw new Error("no funds");
      },
    });
    const client = tool({ inputSchema });
    const kit = durableTools("bank", { pay: failing, client });
    expect(kit.tools.client).toBe(client);
    expect(kit.effects).toHaveLength(1);
    const agent = new ToolLoopAgent({
      model: durableModel(new ScriptedLanguageModel("v4", calling(pay))),
      tools: { pay: kit.tools.pay },
    });
    const { outcome } = await ran(async () => (await agent.generate({ prompt: "go" })).text, kit);
    expect(JSON.parse(outcome as string)).toEqual([{ type: "error-text", value: expect.stringContaining("no funds") }]);
  });

  it("refuse mistakes", () => {
    const tools = { pay: tool({ inputSchema, execute: () => 1 }), client: tool({ inputSchema }) };
    expect(() => durableTools("", tools)).toThrow(/TAPE_BAD_INPUT/);
    expect(() => durableTools("bank", tools, { pya: {} } as never)).toThrow(/did you mean pay/);
    expect(() => durableTools("bank", tools, { client: { semantics: "read" } })).toThrow(/has no execute/);
    expect(() => durableTools("bank", tools, {}, { strict: true })).toThrow(/TAPE_UNSAFE_EFFECT/);
    expect(() => durableTools("bank", tools, { pay: { semantics: "idempotent" } }, { strict: true })).not.toThrow();
  });

  it.each([
    [7, true, [{ type: "json", value: "paid" }]],
    [7, false, [{ type: "error-text", value: expect.stringContaining("denied: too much") }]],
    [6, true, [{ type: "text", value: "paid" }]],
  ])("open a gate for the approval that the tool wants itself (AI SDK %i, %s)", async (sdk, approved, expected) => {
    const definition = {
      inputSchema,
      needsApproval: ({ amount }: { amount: number }) => amount > 1,
      execute: () => "paid",
    };
    const policy = { allowUnsafe: "a test", approve: "framework" } as const;
    const model = durableModel(new ScriptedLanguageModel(sdk === 7 ? "v4" : "v3", calling(pay)));
    const kit7 = durableTools("bank", { pay: tool(definition) }, { pay: policy });
    const kit6 = durableTools("bank", { pay: tool6(definition) }, { pay: policy });
    const agent =
      sdk === 7
        ? new ToolLoopAgent({ model: model as never, tools: kit7.tools })
        : new ToolLoopAgent6({ model: model as never, tools: kit6.tools });
    const { effects } = sdk === 7 ? kit7 : kit6;
    const { tape } = await ran(async () => (await agent.generate({ prompt: "go" })).text, { effects });
    expect(await answer(tape, { approved, reason: "too much" })).toBe(1);
    const { outcome, status } = await settled(tape);
    expect(status).toBe("COMPLETED");
    const [output] = JSON.parse(outcome as string) as [{ type: string; value: unknown }];
    expect([{ ...output, type: expected[0]!.type }]).toEqual(expected);
  });
});

type Agent = { generate(options: never): PromiseLike<{ text: string }> };

describe("withApprovals", () => {
  it.each([
    [7, true],
    [7, false],
    [6, true],
  ])("opens a gate where the SDK requests an approval (AI SDK %i, approved: %s)", async (sdk, approved) => {
    let paid = 0;
    const execute = () => {
      paid++;
      return "paid";
    };
    const model = durableModel(new ScriptedLanguageModel(sdk === 7 ? "v4" : "v3", calling(pay)));
    const definition = { inputSchema, needsApproval: true, execute };
    const kit7 = durableTools("bank", { pay: tool(definition) }, { pay: { allowUnsafe: "a test" } });
    const kit6 = durableTools("bank", { pay: tool6(definition) }, { pay: { allowUnsafe: "a test" } });
    const agent =
      sdk === 7
        ? new ToolLoopAgent({ model: model as never, tools: kit7.tools })
        : new ToolLoopAgent6({ model: model as never, tools: kit6.tools });
    const { effects } = sdk === 7 ? kit7 : kit6;
    const { tape, records } = await ran(
      async () => (await withApprovals(agent as Agent, [{ role: "user", content: "go" }])).text,
      { effects },
    );
    expect(paid).toBe(0);
    expect(records.find(({ kind }) => kind === "gate.opened")!.data).toMatchObject({
      name: "tool approval",
      payload: { tool: "pay", input: { amount: 5 }, call: "c1" },
    });
    expect(await answer(tape, { approved, reason: "because" })).toBe(1);
    const { status, outcome } = await settled(tape);
    expect(status).toBe("COMPLETED");
    expect(outcome).toContain(approved ? "paid" : "because");
    expect(paid).toBe(approved ? 1 : 0);
  });
});

describe("asTool", () => {
  it("starts a child run for each call and returns its result", async () => {
    const research = workflow("research", async (tape, { topic }: { topic: string }) => {
      if (topic === "nothing") throw new Error("no sources");
      return await tape.step("find", () => `sources on ${topic}`);
    });
    const tools = {
      research: asTool(research, { description: "Finds sources", inputSchema: z.object({ topic: z.string() }) }),
    };
    const call = (id: string, topic: string) => ({ id, tool: "research", input: { topic } });
    const agent = new ToolLoopAgent({
      model: durableModel(new ScriptedLanguageModel("v4", calling(call("c1", "tax"), call("c2", "nothing")))),
      tools,
    });
    const { outcome, tape } = await ran(async () => (await agent.generate({ prompt: "go" })).text, {
      workflows: [research as never],
    });
    const [found, failed] = JSON.parse(outcome as string) as { type: string; value: string }[];
    expect(found).toEqual({ type: "text", value: "sources on tax" });
    expect(failed!.type).toBe("error-text");
    expect(failed!.value).toContain("no sources");
    const runs = await tape.store.read.runs(tape.tape.tenant);
    expect(runs.filter(({ workflow: name }) => name === "research")).toHaveLength(2);
  });
});

describe("a run that is cancelled", () => {
  it("ends its agent, although the SDK turns errors of tools into words", async () => {
    const model = new ScriptedLanguageModel("v4", calling(pay, { ...pay, id: "c2" }));
    const kit = durableTools(
      "bank",
      { pay: tool({ inputSchema, execute: () => "paid" }) },
      { pay: { allowUnsafe: "a test", approve: true } },
    );
    const agent = new ToolLoopAgent({ model: durableModel(model), tools: kit.tools });
    const { tape, flow } = await opened(async () => (await agent.generate({ prompt: "go" })).text, kit);
    await tape.start(flow, undefined, { id: "run" });
    await tape.settle();
    await tape.cancel("run");
    expect((await settled(tape)).status).toBe("CANCELLED");
    expect(model.calls).toBe(1);
  });
});

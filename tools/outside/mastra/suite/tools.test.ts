import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { current, workflow } from "durable-tape";
import { durableModel, durableTools, toolApproval } from "durable-tape/mastra";
import { expect, it } from "vitest";
import { z } from "zod";
import type { Script } from "../../agents/framework.ts";
import { opened } from "../../agents/suite.ts";
import { scriptedModel } from "./scripted-model.ts";

const once =
  (tool: string, input: Record<string, unknown>): Script =>
  ({ results }) =>
    results.length === 0
      ? { calls: [{ id: "c1", tool, input }] }
      : { text: results.map(({ output }) => output).join() };

type Kit = { readonly tools: object; readonly effects: readonly never[] | readonly object[] };

/** The framework's own agent with these tools. */
function agentWith(kit: Kit, script: Script) {
  const agent = new Agent({
    ...{ id: "clerk", name: "Clerk", instructions: "Work.", tools: kit.tools as never },
    model: durableModel(scriptedModel(script), { agent: "clerk" }),
  });
  const run = async (_: unknown, text: string): Promise<string> =>
    (await agent.generate(text)).steps.at(-1)?.text ?? "";
  return { effects: kit.effects as never, run };
}

it("a tool receives its input as it was parsed once, also in a second attempt", async () => {
  const seen: unknown[] = [];
  const book = createTool({
    id: "book",
    description: "Books a day",
    inputSchema: z.object({ day: z.string().transform((text) => new Date(text)) }),
    execute: async ({ day }, context) => {
      seen.push([day instanceof Date, context?.agent?.toolCallId, context?.abortSignal?.aborted]);
      if (seen.length === 1) throw Object.assign(new Error("not yet"), { code: "ECONNREFUSED" });
      return { booked: day.getUTCDate() };
    },
  });
  const kit = durableTools("desk", { book }, { book: { semantics: "idempotent" } });
  const { start } = await opened(agentWith(kit, once("book", { day: "2026-11-18" })));
  expect((await start("go")).outcome).toBe('{"booked":18}');
  expect(seen).toEqual([
    [true, "c1", false],
    [true, "c1", false],
  ]);
});

it("results are plain, and one that cannot be stored is no failure", async () => {
  class Money {
    readonly cents = 7n;
    toJSON = () => ({ cents: 7 });
  }
  const results = [new Money(), () => 7, new Response("late", { status: 202 }), undefined];
  const received: string[] = [];
  for (const [k, result] of results.entries()) {
    const tool = createTool({ id: "get", description: "Gets", execute: async () => result });
    const kit = durableTools(`desk${k}`, { get: tool }, { get: { semantics: "read" } });
    const { start } = await opened(agentWith(kit, once("get", {})));
    received.push(String((await start("go")).outcome));
  }
  expect(received).toEqual([
    '{"cents":7}',
    '{"done":true,"note":"the result cannot be stored"}',
    '{"status":202,"ok":true,"body":"late"}',
    "", // Mastra itself ends its loop there
  ]);
});

it("a tool cannot suspend, and a schema for that is refused", async () => {
  const ask = createTool({
    id: "ask",
    description: "Asks",
    execute: async (_, context) => await context?.agent?.suspend({}),
  });
  const kit = durableTools("desk", { ask }, { ask: { allowUnsafe: "a question" } });
  const { start } = await opened(agentWith(kit, once("ask", {})));
  expect((await start("go")).outcome).toContain("a durable tool cannot suspend");
  const schema = createTool({ id: "ask", description: "Asks", suspendSchema: z.object({}), execute: async () => 1 });
  expect(() => durableTools("desk", { ask: schema })).toThrow("TAPE_BAD_INPUT: tool ask suspends itself");
  const client = createTool({ id: "ask", description: "Asks" });
  expect(() => durableTools("desk", { client })).toThrow("TAPE_BAD_INPUT: tool client has no execute");
});

it.each([
  ["true", true, undefined, true],
  ["a function", ({ sum }: { sum: number }) => sum > 5, undefined, true],
  ["a function that needs none", ({ sum }: { sum: number }) => sum > 9, undefined, false],
  ["true, and a policy that decides instead", true, false, false],
  ["nothing, and a policy that wants it", undefined, true, true],
] as const)("a gate opens with requireApproval: %s", async (_, requireApproval, approve, waits) => {
  const wire = createTool({
    ...{ id: "wire", description: "Wires", inputSchema: z.object({ sum: z.number() }) },
    execute: async ({ sum }) => `wired ${sum}`,
    ...(requireApproval !== undefined && { requireApproval }),
  });
  const policy = { semantics: "idempotent", ...(approve !== undefined && { approve }) } as const;
  const kit = durableTools("desk", { wire }, { wire: policy });
  const { tape, start, view, gates } = await opened(agentWith(kit, once("wire", { sum: 7 })));
  expect((await start("go")).status).toBe(waits ? "WAITING" : "COMPLETED");
  if (!waits) return;
  expect((await gates())[0]?.payload).toEqual({ tool: "desk.wire", input: { sum: 7 }, call: "c1" });
  await tape.signal("run", toolApproval, { approved: true });
  expect((await view()).outcome).toBe("wired 7");
});

it("a tool is left as it was, and outside a run or without an agent it refuses to run", async () => {
  const wire = createTool({ id: "wire", description: "Wires", requireApproval: true, execute: async () => "wired" });
  const { tools } = durableTools("desk", { wire }, { wire: { semantics: "read" } });
  expect([wire.requireApproval, tools.wire.requireApproval]).toEqual([true, false]);
  await expect(tools.wire.execute!({}, {} as never)).rejects.toThrow("without the id of its call");
  await expect(tools.wire.execute!({}, { agent: { toolCallId: "c" } } as never)).rejects.toThrow("TAPE_NO_RUN");
});

it("a tool needs a policy in strict mode, and every policy needs its tool", () => {
  const wire = createTool({ id: "wire", description: "Wires", execute: async () => "wired" });
  expect(() => durableTools("desk", { wire }, {}, { strict: true })).toThrow("TAPE_UNSAFE_EFFECT");
  expect(() => durableTools("desk", { wire }, { wyre: {} } as object)).toThrow("wyre");
});

it("a consulted agent that fails is words for the agent that consults it", async () => {
  const model = durableModel(
    scriptedModel(() => {
      throw Object.assign(new Error("no such model"), { statusCode: 404 });
    }),
  );
  const lawyer = new Agent({ id: "lawyer", name: "Lawyer", instructions: "Advise.", model });
  const kit = durableTools("lead", { lawyer });
  expect([kit.tools.lawyer.id, kit.tools.lawyer.description, kit.effects]).toEqual(["lawyer", "Consults Lawyer", []]);
  const { start } = await opened(agentWith(kit, once("lawyer", { prompt: "may I?" })));
  expect((await start("go")).outcome).toContain("no such model");
});

it("a consulted agent whose tool starts a workflow is replayed with it", async () => {
  const child = workflow("child", async (tape, day: number) => {
    await tape.sleep("1h");
    return day + 1;
  });
  const plan = createTool({
    ...{ id: "plan", description: "Plans", inputSchema: z.object({ day: z.number() }) },
    execute: async ({ day }) => await current().call(child, day),
  });
  const own = durableTools("expert", { plan }, { plan: { local: true } });
  const model = durableModel(scriptedModel(once("plan", { day: 7 })), { agent: "planner", strict: true });
  const planner = new Agent({ id: "planner", name: "Planner", instructions: "Plan.", model, tools: own.tools });
  const kit = durableTools("lead", { planner });
  const { start } = await opened(agentWith(kit, once("planner", { prompt: "when?" })), undefined, [child]);
  expect((await start("go")).outcome).toBe("8");
});

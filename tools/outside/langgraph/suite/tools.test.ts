import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, interrupt } from "@langchain/langgraph";
import { createRunner, type Workflow, workflow } from "durable-tape";
import { durableChat, durableTools, interrupted, toolApproval } from "durable-tape/langgraph";
import { createAgent } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { gateOf, open, user } from "./programs.ts";
import { ScriptedChat } from "./scripted-chat.ts";

const seen: BaseMessage[] = [];
/** Calls one tool, and keeps what the model reads of it. */
const calling = (name: string, args: Record<string, unknown> = {}) =>
  new ScriptedChat({
    answer: (messages) => {
      const result = messages.find((message) => message.getType() === "tool");
      if (result === undefined) return { calls: [{ id: "c-1", name, args }] };
      seen.push(result);
      return { text: "done" };
    },
  });
const schema = z.object({});

async function run(name: string, body: () => unknown, policy: object, input: Record<string, unknown> = {}) {
  seen.length = 0;
  const own = tool(async () => (await body()) as string, { name, description: name, schema: z.object({}).loose() });
  const kit = durableTools("group", [own], { [name]: policy });
  const agent = createAgent({ model: durableChat(calling(name, input)), tools: kit.tools });
  const flow = workflow("flow", async (tape) => (await interrupted(tape, agent, user("go"))).messages.length);
  const app = await open(createRunner({ workflows: [flow as Workflow<undefined, number>], effects: kit.effects }));
  return { app, handle: await app.start(flow as Workflow<undefined, number>, undefined, { id: name }) };
}

describe("tools", () => {
  it.each([
    ["text", () => "plums", "plums"],
    ["an object", () => ({ likes: "plums" }), '{"likes":"plums"}'],
    ["blocks of content", () => [{ type: "text", text: "plums" }], [{ type: "text", text: "plums" }]],
    ["a message of its own", () => new ToolMessage({ content: "plums", tool_call_id: "c-1", artifact: [1] }), "plums"],
    [
      "a command",
      () => new Command({ update: { messages: [new ToolMessage({ content: "plums", tool_call_id: "c-1" })] } }),
      "plums",
    ],
  ])("may return %s", async (_, body, content) => {
    const { handle } = await run("fetch", body, { semantics: "read" });
    expect(await handle.result()).toBe(4);
    expect(seen[0]?.content).toEqual(content);
    expect((seen[0] as ToolMessage).tool_call_id).toBe("c-1");
  });

  it("that fail definitely are read about by the model", async () => {
    const { handle } = await run("fail", () => Promise.reject(new Error("no stock")), {});
    expect(await handle.result()).toBe(4);
    expect(seen[0]?.content).toContain("no stock");
    expect((seen[0] as ToolMessage).status).toBe("error");
  });

  it("that call interrupt() are refused with the way out", async () => {
    const { handle } = await run("ask", () => interrupt("?"), { semantics: "idempotent" });
    expect(await handle.result()).toBe(4);
    expect(seen[0]?.content).toContain("give it the policy `approve`");
  });

  it("wait for an approval of exactly this call; a denial is read by the model", async () => {
    let paid = 0;
    const { app, handle } = await run(
      "pay",
      () => `paid ${++paid}`,
      { semantics: "idempotent", approve: true },
      { n: 1 },
    );
    const { payload } = await gateOf(app, "pay", toolApproval.name);
    expect(payload).toEqual({ tool: "group.pay", input: { n: 1 }, call: "c-1" });
    await app.signal("pay", toolApproval, { approved: false, reason: "too much" });
    await handle.result();
    expect(seen[0]?.content).toContain("too much");
    expect(paid).toBe(0);
  });

  it("need a policy for a tool that exists, and each one in strict mode", () => {
    const own = tool(async () => "", { name: "own", description: "", schema });
    // @ts-expect-error the compiler refuses it too
    expect(() => durableTools("g", [own], { owm: {} })).toThrow("policy for owm");
    expect(() => durableTools("g", [own], {}, { strict: true })).toThrow("has no policy");
  });
});

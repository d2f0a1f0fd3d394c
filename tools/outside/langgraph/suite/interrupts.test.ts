import { tool } from "@langchain/core/tools";
import { Annotation, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import { createRunner, type Workflow, workflow } from "durable-tape";
import { durableChat, durableTools, graphInterrupt, interrupted } from "durable-tape/langgraph";
import { createAgent, humanInTheLoopMiddleware } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { gateOf, open, user } from "./programs.ts";
import { ScriptedChat } from "./scripted-chat.ts";

describe("interrupts", () => {
  const approvalGraph = new StateGraph(Annotation.Root({ amount: Annotation<number>, verdict: Annotation<string> }))
    .addNode("approve", ({ amount }) => ({ verdict: String(interrupt({ question: "pay?", amount })) }))
    .addEdge(START, "approve")
    .addEdge("approve", END)
    .compile();

  it("wait at a gate with their value, and continue with its answer", async () => {
    const flow = workflow("flow", (tape, amount: number) => interrupted(tape, approvalGraph, { amount }));
    const app = await open(createRunner({ workflows: [flow] }));
    const run = await app.start(flow, 7, { id: "a" });
    expect((await gateOf(app, "a", graphInterrupt.name)).payload).toEqual({ question: "pay?", amount: 7 });
    await app.signal("a", graphInterrupt, "yes");
    expect(await run.result()).toEqual({ amount: 7, verdict: "yes" });
  });

  it("of parallel tasks are answered one by one, each with its own answer", async () => {
    const state = Annotation.Root({
      found: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
    });
    const graph = new StateGraph(state)
      .addNode("one", async () => ({ found: [`one ${String(interrupt("a"))}`] }))
      .addNode("two", async () => ({ found: [`two ${String(interrupt("b"))}`] }))
      .addEdge(START, "one")
      .addEdge(START, "two")
      .compile();
    const flow = workflow("flow", (tape) => interrupted(tape, graph, {}));
    const app = await open(createRunner({ workflows: [flow as Workflow<undefined, unknown>] }));
    const run = await app.start(flow as Workflow<undefined, unknown>, undefined, { id: "p" });
    expect((await gateOf(app, "p", graphInterrupt.name)).payload).toBe("a");
    await app.signal("p", graphInterrupt, "first");
    await app.signal("p", graphInterrupt, "second");
    expect(await run.result()).toEqual({ found: ["one first", "two second"] });
  });

  it("of LangChain's own middleware for approvals work without a checkpointer", async () => {
    const sent: string[] = [];
    const send = tool(async ({ to }) => `sent ${sent.push(to)}`, {
      ...{ name: "send", description: "Sends a letter.", schema: z.object({ to: z.string() }) },
    });
    const kit = durableTools("post", [send], { send: { semantics: "idempotent" } });
    const model = new ScriptedChat({
      answer: (messages) =>
        messages.some((message) => message.getType() === "tool")
          ? { text: "sent" }
          : { calls: [{ id: "c-1", name: "send", args: { to: "ada" } }] },
    });
    const middleware = [
      humanInTheLoopMiddleware({ interruptOn: { send: { allowedDecisions: ["approve", "reject"] } } } as never),
    ];
    const agent = createAgent({ model: durableChat(model), tools: kit.tools, ...({ middleware } as object) });
    const flow = workflow(
      "post",
      async (tape, text: string) => (await interrupted(tape, agent, user(text))).messages.at(-1)!.data.content,
    );
    const app = await open(createRunner({ workflows: [flow], effects: kit.effects }));
    const run = await app.start(flow, "write to ada", { id: "h" });
    const { payload } = await gateOf(app, "h", graphInterrupt.name);
    expect(JSON.stringify(payload)).toContain('"ada"');
    expect(sent).toEqual([]);
    await app.signal("h", graphInterrupt, { decisions: [{ type: "approve" }] });
    expect(await run.result()).toBe("sent");
    expect(sent).toEqual(["ada"]);
  });
});

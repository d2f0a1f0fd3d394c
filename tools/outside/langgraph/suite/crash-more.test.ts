import { tool } from "@langchain/core/tools";
import { Annotation, interrupt, Send, START, StateGraph } from "@langchain/langgraph";
import { createRunner, type Workflow, workflow } from "durable-tape";
import { durableChat, durableTools, graphInterrupt, interrupted, toolApproval } from "durable-tape/langgraph";
import { crashAtEveryBoundary } from "durable-tape/testing";
import { createAgent } from "langchain";
import { expect, it } from "vitest";
import { z } from "zod";
import { noteRounds } from "../../rounds.ts";
import { user } from "./programs.ts";
import { ScriptedChat } from "./scripted-chat.ts";
import { bank, observed, pay, policies, search, transfer, treasurer } from "./treasurer.ts";

function noted(agent: string, boundaries: readonly string[], rounds: number, paidOnce: number): void {
  console.log(`${agent}: ${boundaries.length} boundaries, ${rounds} rounds`);
  noteRounds({ framework: "LangGraph", agent, boundaries: boundaries.length, rounds, paidOnce });
}

const list = Annotation<string[]>({ reducer: (a, b) => [...a, ...b].sort(), default: () => [] });

it.each([false, true])(
  "an approved payment happens once at every boundary (stream: %s)",
  { timeout: 600_000 },
  async (stream) => {
    const kit = durableTools("treasury", [search, pay], { ...policies, pay: { ...policies.pay, approve: true } });
    const agent = createAgent({ model: durableChat(new ScriptedChat({ answer: treasurer })), tools: kit.tools });
    const chat = workflow(
      "chat",
      async (tape, text: string) => (await interrupted(tape, agent, user(text), { stream })).messages.length,
    );
    let paid = -1; // the round without a crash is not counted
    const { boundaries, rounds, reached, statuses } = await crashAtEveryBoundary({
      workflow: chat,
      input: "pay invoice 7",
      runner: createRunner({ workflows: [chat], effects: kit.effects }),
      signals: [{ gate: toolApproval, value: { approved: true }, times: "always" }],
      ledger: bank,
      check: () => {
        expect(bank.seen).toHaveLength(1);
        paid++;
      },
    });
    expect([reached, statuses]).toEqual([rounds, { COMPLETED: rounds }]);
    noted(`with approval, ${stream ? "stream" : "generate"}`, boundaries, rounds, paid);
  },
);

it.each([false, true])(
  "parallel tasks pay once each, then interrupt, at every boundary (stream: %s)",
  { timeout: 600_000 },
  async (stream) => {
    const model = new ScriptedChat({ answer: (messages) => ({ text: `re ${messages.at(-1)!.content}` }) });
    const send = tool(({ invoice }) => transfer(invoice), {
      name: "send",
      description: "Pays.",
      schema: z.object({ invoice: z.string() }),
    });
    const kit = durableTools("treasury", [send], { send: { businessKey: (a) => a.invoice, observe: observed } });
    const chat = durableChat(model);
    const graph = new StateGraph(
      Annotation.Root({ done: list, invoice: Annotation<string>, verdict: Annotation<string> }),
    )
      .addNode("one", async ({ invoice }) => {
        const { content } = await chat.invoke(`pay ${invoice}`);
        await kit.tools[0]!.invoke({ type: "tool_call", id: `c-${invoice}`, name: "send", args: { invoice } });
        return { done: [`${invoice} ${content}`] };
      })
      .addNode("ask", ({ done }) => ({ verdict: String(interrupt(done)) }))
      .addConditionalEdges(START, () => ["7", "8"].map((invoice) => new Send("one", { invoice })), ["one"])
      .addEdge("one", "ask")
      .compile();
    const flow = workflow("flow", (tape) => interrupted(tape, graph, { done: [] } as never, { stream })) as Workflow<
      undefined,
      unknown
    >;
    let paid = -1;
    const { boundaries, rounds, reached, statuses } = await crashAtEveryBoundary({
      workflow: flow,
      input: undefined,
      runner: createRunner({ workflows: [flow], effects: kit.effects }),
      signals: [{ gate: graphInterrupt, value: "good", times: "always" }],
      ledger: bank,
      check: ({ run }) => {
        expect(bank.seen.map(({ businessKey }) => businessKey).sort()).toEqual(["7", "8"]);
        expect(run.outcome).toMatchObject({ done: ["7 re pay 7", "8 re pay 8"], verdict: "good" });
        paid++;
      },
    });
    expect([reached, statuses]).toEqual([rounds, { COMPLETED: rounds }]);
    noted(`two tasks and an interrupt, ${stream ? "stream" : "generate"}`, boundaries, rounds, paid);
  },
);

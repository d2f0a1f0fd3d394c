import { createRunner, workflow } from "durable-tape";
import { durableChat, durableTools, interrupted } from "durable-tape/langgraph";
import { crashAtEveryBoundary } from "durable-tape/testing";
import { createAgent } from "langchain";
import { describe, expect, it } from "vitest";
import { noteRounds } from "../../rounds.ts";
import { ScriptedChat } from "./scripted-chat.ts";
import { bank, pay, policies, search, treasurer } from "./treasurer.ts";

describe("LangChain's own agent in a run, crashed and paused at every boundary", () => {
  it.each(["generate", "stream"] as const)("pays once (%s)", { timeout: 600_000 }, async (mode) => {
    const kit = durableTools("treasury", [search, pay], policies);
    const agent = createAgent({ model: durableChat(new ScriptedChat({ answer: treasurer })), tools: kit.tools });
    const chat = workflow("chat", async (tape, text: string) => {
      const input = { messages: [{ role: "user" as const, content: text }] };
      const { messages } = await interrupted(tape, agent, input, { stream: mode === "stream" });
      return messages.at(-1)!.data.content;
    });
    const calls: number[] = [];
    const { rounds, reached, boundaries, statuses } = await crashAtEveryBoundary({
      workflow: chat,
      input: "pay invoice 7",
      runner: createRunner({ workflows: [chat], effects: kit.effects }),
      ledger: bank,
      fresh: () => {
        ScriptedChat.calls = 0;
      },
      check: () => {
        calls.push(ScriptedChat.calls);
        expect(bank.seen.filter(({ name }) => name === "pay")).toHaveLength(1);
        // A call that was in flight at the crash is made again, and one more if the payment was proven absent.
        expect(ScriptedChat.calls).toBeLessThanOrEqual(4);
      },
    });
    const counts = Object.entries(Object.groupBy(calls, String)).map(([count, all]) => `${count} × ${all!.length}`);
    console.log(`${mode}: ${boundaries.length} boundaries, ${rounds} rounds, model calls ${counts.join(", ")}`);
    expect(reached).toBe(rounds);
    expect(rounds).toBeGreaterThan(60);
    expect(statuses).toEqual({ COMPLETED: rounds });
    expect(Math.min(...calls)).toBe(3);
    const paidOnce = calls.length - 1; // without the round that has no crash
    noteRounds({ framework: "LangGraph", agent: mode, boundaries: boundaries.length, rounds, paidOnce });
  });
});

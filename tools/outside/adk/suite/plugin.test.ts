import {
  AgentTool,
  FunctionTool,
  LlmAgent,
  type LlmResponse,
  LogLevel,
  setLogLevel,
  type ToolUnion,
} from "@google/adk";
import { TapePlugin, type ToolPolicies } from "durable-tape/adk";
import { beforeEach, expect, it } from "vitest";
import type { Script } from "../../agents/framework.ts";
import { opened } from "../../agents/suite.ts";
import { answerOf, restored, withIds } from "../src/adk/contents.ts";
import { turn } from "./framework.ts";
import { ScriptedLlm } from "./scripted-llm.ts";

beforeEach(() => setLogLevel(LogLevel.ERROR));

function agentOf(script: Script, tools: ToolUnion[], policies: ToolPolicies, ids = true) {
  const plugin = new TapePlugin(policies);
  const agent = new LlmAgent({
    name: "clerk",
    model: new ScriptedLlm(script, { ids }),
    instruction: "{count?}",
    tools,
  });
  return { agent, plugin, effects: plugin.effects };
}

const once: Script = ({ results }) =>
  results.length === 0 ? { calls: [{ id: "c1", tool: "count", input: {} }] } : { text: `it is ${results[0]!.output}` };

it("a replayed tool changes the state again, and calls without ids keep the ids of the record", async () => {
  let runs = 0;
  const count = new FunctionTool({
    name: "count",
    description: "counts",
    execute: (_: unknown, context) => {
      runs++;
      context!.state.set("count", 7);
      context!.state.set("user:seen", true);
      return "seven";
    },
  });
  const kit = agentOf(once, [count], { count: { semantics: "idempotent" } }, false);
  const states: unknown[] = [];
  const { start, records } = await opened({ effects: kit.effects, run: async () => "" }, async (tape, text) => {
    const { clerk } = await turn(tape, kit.agent, kit.plugin, text);
    await tape.sleep("1h"); // it parks, and is replayed
    const second = await turn(tape, kit.agent, kit.plugin, text);
    states.push(clerk, second.clerk);
    return clerk;
  });
  expect((await start("count")).outcome).toBe("it is seven");
  expect([runs, states]).toEqual([1, ["it is seven", "it is seven"]]);
  const all = await records();
  const written = all
    .filter(({ kind }) => kind === "value.written")
    .map(({ data }) => data as { key: string; value: unknown });
  expect(written.find(({ key }) => key === "adk/treasury/user/ada")?.value).toEqual({ seen: true });
  const events = written.findLast(({ key }) => key === "adk/treasury/events/ada/s/0")!.value as {
    items: { actions: { stateDelta: object } }[];
  };
  expect(events.items.filter(({ actions }) => "count" in actions.stateDelta)).toHaveLength(1);
  const ids = all
    .filter(({ kind }) => kind === "effect.intended")
    .map(({ data }) => (data as { args: { call: string } }).args.call);
  expect(ids).toEqual([expect.stringMatching(/^adk-[\w-]{36}-1$/)]);
});

it.each([
  [
    "an AgentTool",
    () => new AgentTool({ agent: new LlmAgent({ name: "count", model: new ScriptedLlm(once) }) }),
    { count: {} },
    "is an AgentTool",
  ],
  [
    "a tool without a policy",
    () => new FunctionTool({ name: "count", description: "counts", execute: () => "seven" }),
    {},
    "is unknown to TapePlugin",
  ],
] as const)("refuses %s", async (_, tool, policies, why) => {
  const kit = agentOf(once, [tool()], policies);
  const { start } = await opened({ effects: kit.effects, run: async () => "" }, (tape, text) =>
    turn(tape, kit.agent, kit.plugin, text),
  );
  const { status, outcome } = await start("count");
  expect([status, outcome]).toEqual([
    "FAILED",
    expect.objectContaining({ code: "TAPE_BAD_INPUT", message: expect.stringContaining(why) }),
  ]);
});

it("outside a run the agent works as without the plugin", async () => {
  const { InMemorySessionService, Runner } = await import("@google/adk");
  const count = new FunctionTool({ name: "count", description: "counts", execute: () => "seven" });
  const kit = agentOf(once, [count], {});
  const sessionService = new InMemorySessionService();
  const session = await sessionService.createSession({ appName: "a", userId: "u" });
  const runner = new Runner({ appName: "a", agent: kit.agent, plugins: [kit.plugin], sessionService });
  let last = "";
  const newMessage = { role: "user", parts: [{ text: "count" }] };
  for await (const event of runner.runAsync({ userId: "u", sessionId: session.id, newMessage })) {
    last = event.content?.parts?.map((part) => part.text ?? "").join("") ?? last;
  }
  expect(last).toBe("it is seven");
});

it("restores every kind of part", () => {
  const responses: LlmResponse[] = [
    {
      content: { role: "model", parts: [{ text: "so", thought: true, thoughtSignature: "s" }, { text: "a" }] },
      modelVersion: "m",
    },
    {
      content: {
        role: "model",
        parts: [
          { functionCall: { id: "c", name: "pay", args: { a: 1 } } },
          { functionCall: { id: "d", name: "stop", args: {} }, thoughtSignature: "t" },
        ],
      },
    },
    {
      content: {
        role: "model",
        parts: [
          { inlineData: { mimeType: "image/png", data: "AAAA" } },
          { executableCode: { code: "1" } },
          { fileData: { fileUri: "gs://x" } },
        ],
      },
    },
    {
      content: { role: "model", parts: [] },
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, thoughtsTokenCount: 1 },
    },
    { errorCode: "SAFETY", errorMessage: "no" },
  ];
  const answer = JSON.parse(JSON.stringify(answerOf(withIds(responses, "never"))));
  expect(restored({ hash: "", ...answer })).toEqual(responses);
  expect(answer.usage).toEqual({ input: 3, output: 3, reasoning: 1 });
});

import { ToolLoopAgent, tool } from "ai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { durableModel } from "../../src/ai/model.ts";
import { durableTools } from "../../src/ai/tools.ts";
import { seededRandom } from "../../src/base/random.ts";
import { current } from "../../src/sdk/current.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";
import { ScriptedLanguageModel } from "./scripted-model.ts";

const rounds = process.env.TAPE_TEST_EVERY_BOUNDARY === "1" ? 1_000 : 200;

const promptText = (prompt: readonly { readonly role: string; readonly content: unknown }[]): string => {
  const { content } = prompt.find(({ role }) => role === "user")!;
  return (content as { text: string }[])[0]!.text;
};

/** Two experts with the same model and name: only their lanes distinguish their decisions. */
function team(random: () => number) {
  const expertModel = new ScriptedLanguageModel("v4", (turn, prompt) => {
    const topic = promptText(prompt);
    if (turn === 1) return { calls: [{ id: `read-${topic}`, tool: "read", input: { topic } }] };
    if (turn === 2)
      return { calls: [{ id: `nap-${topic}`, tool: "nap", input: { seconds: 1 + Math.floor(random() * 20) } }] };
    return { text: `about ${topic}` };
  });
  const io = async (): Promise<void> => {
    for (let k = Math.floor(random() * 6); k > 0; k--) await new Promise((resolve) => setImmediate(resolve));
  };
  const own = durableTools(
    "expert",
    {
      read: tool({
        inputSchema: z.object({ topic: z.string() }),
        execute: async ({ topic }) => {
          await io(); // of its own: replay takes another time
          return `a page on ${topic}`;
        },
      }),
      nap: tool({
        inputSchema: z.object({ seconds: z.number() }),
        execute: async ({ seconds }) => {
          await current().sleep(`${seconds}s`); // parks, so that a replay follows
          await io();
          return "rested";
        },
      }),
    },
    { read: { local: true }, nap: { local: true } },
  );
  const expert = new ToolLoopAgent({
    model: durableModel(expertModel, { agent: "expert", strict: true }),
    tools: own.tools,
  });
  const lead = new ScriptedLanguageModel("v4", (turn, prompt) => {
    if (turn === 1) {
      const calls = ["law", "tax"].map((topic) => ({ id: `c-${topic}`, tool: "consult", input: { topic } }));
      return { calls };
    }
    const results = prompt.at(-1)!.content as { toolCallId: string; output: { value: unknown } }[];
    return { text: results.map(({ toolCallId, output }) => `${toolCallId}: ${String(output.value)}`).join(", ") };
  });
  const kit = durableTools(
    "lead",
    {
      consult: tool({
        inputSchema: z.object({ topic: z.string() }),
        execute: async ({ topic }) => {
          await io();
          return (await expert.generate({ prompt: topic })).text;
        },
      }),
    },
    { consult: { local: true } },
  );
  const agent = new ToolLoopAgent({ model: durableModel(lead, { agent: "lead" }), tools: kit.tools });
  return workflow("team", async () => (await agent.generate({ prompt: "advise" })).text);
}

describe("two sub-agents in parallel", () => {
  it(`never receive each other's answers in ${rounds} interleavings`, { timeout: 300 * rounds }, async () => {
    const seeded = seededRandom(process.env.TAPE_TEST_SEED ?? "parallel agents");
    const flow = team(() => seeded.float());
    await using tape = await VirtualTape.open({ runner: createRunner({ workflows: [flow] }), log: "silent" });
    for (let k = 0; k < rounds; k++) await tape.start(flow, undefined, { id: `run-${k}` });
    await tape.settle();
    const runs = await tape.store.read.runs(tape.tape.tenant, { limit: rounds });
    const ended = Object.groupBy(runs, ({ status, outcome }) => `${status} ${String(outcome)}`);
    expect(Object.fromEntries(Object.entries(ended).map(([how, all]) => [how, all!.length]))).toEqual({
      "COMPLETED c-law: about law, c-tax: about tax": rounds,
    });
    const parked = (await tape.store.read.journal(tape.tape.tenant, { run: "run-0" })).filter(
      ({ kind }) => kind === "term.started",
    );
    expect(parked.length).toBeGreaterThan(0); // it was replayed
  });
});

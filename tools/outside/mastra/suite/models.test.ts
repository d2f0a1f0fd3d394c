import { Agent } from "@mastra/core/agent";
import { createRunner, Tape, workflow } from "durable-tape";
import { type DurableModelOptions, durableModel, durableTools } from "durable-tape/mastra";
import { afterEach, expect, it } from "vitest";
import { FakeOpenAi, type Reply } from "../../agents/fake-openai.ts";
import type { Mode } from "../../agents/framework.ts";
import { search, treasurer, words } from "../../agents/treasury.ts";
import { mastra, streamed, toolsOf } from "./framework.ts";
import { scriptedModel } from "./scripted-model.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function served(reply: (request: number) => Reply) {
  const fake = new FakeOpenAi((_, request) => reply(request));
  closing.push(() => fake.close());
  return { fake, config: { id: "local/gpt-6", url: await fake.url(), apiKey: "key" } as const };
}

/** Runs an agent of this model to its end, with a replay in between. */
async function answered(model: ConstructorParameters<typeof Agent>[0]["model"], mode: Mode) {
  const kit = durableTools("desk", toolsOf([search]), { search: { semantics: "read" } });
  const agent = new Agent({ id: "clerk", name: "Clerk", instructions: "Work.", model, tools: kit.tools });
  const answers: unknown[] = [];
  const chat = workflow("chat", async (tape, text: string) => {
    const work = mode === "generate" ? agent.generate(text).then(({ steps }) => steps) : streamed(agent, text);
    answers.push(await work.then((steps) => steps.map((step) => step.text)).catch((error: unknown) => error));
    await tape.sleep("3s"); // it parks, and is replayed
    return "ended";
  });
  const runner = createRunner({ workflows: [chat], effects: kit.effects });
  const app = await Tape.open({ store: "memory:", runner, log: "silent" });
  closing.push(() => app.close());
  const run = await app.start(chat, "find invoice 7", { id: "run", budget: { tokens: 50_000 } });
  expect(await run.result()).toBe("ended");
  const records = await app.store.read.journal(app.tenant, { run: "run" });
  const spent = records.flatMap(({ kind, data }) =>
    kind === "budget.charged" ? [Number((data as { spent: Record<string, number> }).spent.tokens) / 1_000_000] : [],
  );
  return { answers, spent };
}

const strict: DurableModelOptions = { agent: "clerk", strict: true };
const turns = (request: number): Reply =>
  request === 1
    ? { text: "I look it up. ", call: { id: "s-1", name: "search", args: { invoice: "7" } } }
    : { text: "It is due." };

it.each(["generate", "stream"] as const)("a model of Mastra's router is asked once, and counted (%s)", async (mode) => {
  const { fake, config } = await served(turns);
  const { answers, spent } = await answered(durableModel(config, strict), mode);
  expect(answers).toEqual([
    ["I look it up. ", "It is due."],
    ["I look it up. ", "It is due."],
  ]);
  expect([fake.requests.length, spent]).toEqual([2, [15, 15]]);
  const prompt = JSON.stringify(fake.requests[1]!.messages);
  expect(prompt).toContain("120 EUR to Ada");
  expect(prompt).not.toContain("createdAt");
});

it.each(["generate", "stream"] as const)("a failure of the router's provider is replayed (%s)", async (mode) => {
  const { fake, config } = await served(() => ({ status: 400 }));
  const { answers } = await answered(durableModel(config, strict), mode);
  expect(answers.map((error) => mastra.isProviderError(error, 400))).toEqual([true, true]);
  expect(fake.requests).toHaveLength(1);
});

it.each(["generate", "stream"] as const)("Tape alone repeats a request of the router (%s)", async (mode) => {
  const { fake, config } = await served((request) =>
    request === 1 ? { status: 429, headers: { "retry-after": "1" } } : { text: "Done." },
  );
  const { answers } = await answered(durableModel(config, strict), mode);
  expect([answers, fake.requests.length]).toEqual([[["Done."], ["Done."]], 2]);
});

it.each([
  ["v3", "generate"],
  ["v3", "stream"],
  ["v4", "generate"],
] as const)("a model of the specification %s (%s)", async (version, mode) => {
  const model = scriptedModel(treasurer, version);
  const { answers } = await answered(durableModel(model, strict), mode);
  expect(answers).toHaveLength(2);
  expect(answers[0]).toEqual(answers[1]);
  expect((answers[0] as string[])[0]).toBe(words[0]);
});

it.each(["generate", "stream"] as const)("a model of AI SDK 5 is counted (%s)", async (mode) => {
  const usage = { inputTokens: 20, outputTokens: 10, totalTokens: 30, cachedInputTokens: 5 };
  const parts = ["text-start", "text-delta", "text-end"].map((type) => ({ type, id: "1", delta: "Done." }));
  const finish = { finishReason: "stop", usage };
  const model = {
    ...{ specificationVersion: "v2", provider: "local", modelId: "five", supportedUrls: {} },
    doGenerate: async () => ({ content: [{ type: "text", text: "Done." }], ...finish, warnings: [] }),
    doStream: async () => ({ stream: ReadableStream.from([...parts, { type: "finish", ...finish }]) }),
  };
  const { answers, spent } = await answered(durableModel(model, strict) as never, mode);
  expect([answers, spent]).toEqual([[["Done."], ["Done."]], [30]]);
});

it("what is no model is refused", () => {
  expect(() => durableModel({ specificationVersion: "v1", doGenerate: 1 } as never)).toThrow("TAPE_BAD_INPUT");
  expect(() => durableModel("openai/gpt-6", { agnet: "x" } as never)).toThrow("agnet");
});

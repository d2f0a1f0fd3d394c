import { ChatOpenAI } from "@langchain/openai";
import { createRunner, followRun, workflow } from "durable-tape";
import { durableChat, durableTools, interrupted } from "durable-tape/langgraph";
import { createAgent } from "langchain";
import { afterEach, describe, expect, it } from "vitest";
import { FakeOpenAi, type Reply } from "../../agents/fake-openai.ts";
import { open, user } from "./programs.ts";
import { bank, pay, policies, search } from "./treasurer.ts";

let server: FakeOpenAi | undefined;
afterEach(async () => {
  await server?.close();
  bank.clear();
});

const script: readonly Reply[] = [
  { text: "I will search. ", call: { id: "s-1", name: "search", args: { invoice: "7" } } },
  { call: { id: "p-1", name: "pay", args: { invoice: "7" } } },
  { text: "Invoice 7 is paid" },
];

async function agentOn(reply: (request: number) => Reply) {
  server = new FakeOpenAi((_, request) => reply(request));
  const model = new ChatOpenAI({
    model: "gpt-6",
    apiKey: "none",
    maxRetries: 0,
    configuration: { baseURL: await server.url() },
  });
  const kit = durableTools("treasury", [search, pay], policies);
  const agent = createAgent({ model: durableChat(model), tools: kit.tools });
  const chat = workflow("chat", async (tape, stream: boolean) => {
    const { messages } = await interrupted(tape, agent, user("pay invoice 7"), { stream });
    return messages.at(-1)!.data.content;
  });
  return { chat, app: await open(createRunner({ workflows: [chat], effects: kit.effects })) };
}

describe("a model of @langchain/openai", () => {
  it.each([false, true])("pays by its tools (stream: %s)", async (stream) => {
    const { app, chat } = await agentOn((request) => script[request - 1]!);
    const run = await app.start(chat, stream, { budget: { tokens: 50_000 } });
    expect(await run.result()).toBe("Invoice 7 is paid");
    expect(bank.seen.map(({ name }) => name)).toEqual(["pay"]);
    expect(server!.requests.map(({ stream: live = false }) => live)).toEqual([stream, stream, stream]);
    const records = await Array.fromAsync(app.journal(run.id));
    const made = records
      .filter(({ kind }) => kind === "decision.made")
      .map(({ data }) => data as Record<string, unknown>);
    expect(made.map(({ name, model }) => `${name} ${model}`)).toEqual([1, 2, 3].map((n) => `gpt-6 ${n} openai/gpt-6`));
    for (const { usage } of made) expect(usage).toMatchObject({ input: 10, output: 5 });
    expect(made[1]).toMatchObject({ request: { before: { messages: 2 }, messages: [{ role: "tool" }] } });
    // The definitions of the tools reached the provider: the wrapper survives that tools are bound to a copy.
    expect(JSON.stringify(server!.requests[0])).toContain('"name":"search"');
  });

  it("shows its words to followers of the run while it streams", async () => {
    const { app, chat } = await agentOn((request) => script[request - 1]!);
    const run = await app.start(chat, true);
    let text = "";
    for await (const event of followRun(app, run.id)) if (event.type === "text") text += event.text;
    expect(text).toContain("I will search. ");
    expect(text).toContain("Invoice 7 is paid");
  });

  it("is asked again by Tape after 429, no earlier than the provider says", async () => {
    const { app, chat } = await agentOn((request) =>
      request === 1 ? { status: 429, headers: { "retry-after-ms": "1500" } } : (script[request - 2] ?? script[2]!),
    );
    const started = performance.now();
    expect(await (await app.start(chat, false)).result()).toBe("Invoice 7 is paid");
    expect(performance.now() - started).toBeGreaterThan(1_490);
    expect(server!.requests).toHaveLength(4);
  });

  it("fails the run for good after 400, with the provider's error", async () => {
    const { app, chat } = await agentOn(() => ({ status: 400 }));
    await expect((await app.start(chat, false)).result()).rejects.toThrow("status 400");
    expect(server!.requests).toHaveLength(1);
  });
});

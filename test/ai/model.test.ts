import { APICallError, generateText, type ModelMessage, streamText } from "ai";
import { APICallError as APICallError6 } from "ai-6";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contentOf, partOf } from "../../src/ai/messages.ts";
import { durableModel } from "../../src/ai/model.ts";
import { encode, sizeOf } from "../../src/base/codec.ts";
import type { RecordData } from "../../src/model/records.ts";
import { ran } from "./ran.ts";
import { ScriptedLanguageModel } from "./scripted-model.ts";

const apiError = (statusCode: number, responseHeaders: Record<string, string> = {}): APICallError =>
  new APICallError({
    message: `status ${statusCode}`,
    url: "https://models.example/v1",
    requestBodyValues: { prompt: "secret prompt" },
    statusCode,
    responseHeaders,
    responseBody: "{}",
  });

describe("a durable model", () => {
  it.each([
    ["2 s", { "retry-after": "2" }, 2_000],
    ["10 min, for which the run parks", { "Retry-After": "600" }, 600_000],
    ["1.5 s", { "retry-after-ms": "1500" }, 1_500],
  ])("waits as long as the provider wants: %s", async (_name, headers, waitMs) => {
    let calls = 0;
    const model = new ScriptedLanguageModel("v4", () => {
      if (++calls === 1) throw apiError(429, headers);
      return { text: "at last" };
    });
    const { outcome, ms, records } = await ran(
      async () => (await generateText({ model: durableModel(model), prompt: "hello" })).text,
    );
    expect(outcome).toBe("at last");
    expect(model.calls).toBe(2);
    expect(ms).toBeGreaterThanOrEqual(waitMs);
    expect(ms).toBeLessThan(waitMs + 5_000);
    expect(records.some(({ kind }) => kind === "term.ended")).toBe(waitMs > 2_000);
  });

  it("throws an error of the SDK that the SDK does not retry, live and on replay", async () => {
    const model = new ScriptedLanguageModel("v3", () => {
      throw apiError(400);
    });
    const seen: unknown[] = [];
    const { records } = await ran(async (tape) => {
      const failing = generateText({ model: durableModel(model), prompt: "hello", maxRetries: 5 });
      await failing.catch((error: unknown) => seen.push(error));
      await tape.sleep("1h");
    });
    expect(model.calls).toBe(1);
    expect(seen).toHaveLength(2);
    for (const error of seen) {
      expect(APICallError.isInstance(error) && APICallError6.isInstance(error)).toBe(true);
      expect(error).toMatchObject({ statusCode: 400, isRetryable: false, message: "status 400", responseBody: "{}" });
    }
    expect(JSON.stringify(records.map(({ data }) => encode(data)))).not.toContain("secret prompt");
  });

  it.each([
    ["outlasts an outage of hours", 40, "COMPLETED"],
    ["is STUCK after a day of outage, and not failed", 10_000, "STUCK"],
  ])("%s", async (_name, failures, expected) => {
    const model = new ScriptedLanguageModel("v4", () => {
      if (model.calls <= failures) throw apiError(503);
      return { text: "back again" };
    });
    const { status, outcome, ms, records } = await ran(
      async () => (await generateText({ model: durableModel(model), prompt: "hello" })).text,
    );
    expect(status).toBe(expected);
    expect(outcome).toBe(expected === "STUCK" ? undefined : "back again");
    expect(ms / 3_600_000).toBeGreaterThan(expected === "STUCK" ? 24 : 4);
    expect(ms / 3_600_000).toBeLessThan(expected === "STUCK" ? 25 : 12);
    expect(records.length).toBeLessThan(800);
  });

  it("gives up after its attempts with the last error, and replays that without waiting", async () => {
    const model = new ScriptedLanguageModel("v4", () => {
      throw apiError(503);
    });
    const seen: unknown[] = [];
    const { ms } = await ran(async (tape) => {
      const failing = generateText({
        model: durableModel(model, { retry: { attempts: 3 }, giveUpAfter: false }),
        prompt: "hello",
      });
      await failing.catch((error: unknown) => seen.push((error as APICallError).statusCode));
      await tape.sleep("1h");
    });
    expect(model.calls).toBe(3);
    expect(seen).toEqual([503, 503]);
    expect(ms).toBeLessThan(3_600_000 + 10_000);
  });

  it("streams words live, and a tool call only after the answer is recorded", async () => {
    const seen: string[] = [];
    const turn = { reasoning: "hm", text: "one two", calls: [{ id: "c1", tool: "look", input: { a: 1 } }] };
    const model = new ScriptedLanguageModel("v4", () => turn);
    const watched = {
      ...durableModel(model),
      doStream: async (options: never) => {
        const { stream } = (await durableModel(model).doStream(options)) as {
          stream: ReadableStream<{ type: string }>;
        };
        for await (const part of stream) seen.push(part.type);
      },
    };
    const { records, tape } = await ran(async (run) => {
      await watched.doStream({ prompt: [{ role: "user", content: [{ type: "text", text: "x" }] }] } as never);
      await run.sleep("1h");
    });
    const live = ["stream-start", "reasoning-start", "reasoning-delta", "reasoning-end"];
    const words = ["text-start", "text-delta", "text-delta", "text-end", "tool-call", "finish"];
    const replayed = [...live, "text-start", "text-delta", "text-end", "tool-call", "finish"];
    expect(seen).toEqual([...live, ...words, ...replayed]);
    expect(model.calls).toBe(1);
    const made = records.find(({ kind }) => kind === "decision.made")!.data as RecordData<"decision.made">;
    expect(made.value).toMatchObject({ finish: "tool-calls", message: { parts: { length: 3 } } });
    const [page] = await tape.store.read.chunks(tape.tape.tenant, [{ run: "run", stream: "parts", from: 0 }]);
    expect(page!.chunks.map((chunk) => ("value" in chunk ? chunk.value : undefined))).toEqual([
      { type: "reasoning", text: "hm" },
      { type: "text", text: "one " },
      { type: "text", text: "two" },
    ]);
  });

  it("whose stream breaks off starts again in a new replay", async () => {
    let broken = true;
    const inner = new ScriptedLanguageModel("v4", () => ({ text: "a whole answer" }));
    const model = {
      ...inner,
      specificationVersion: "v4" as const,
      provider: "local",
      modelId: "scripted",
      doGenerate: inner.doGenerate.bind(inner),
      doStream: async (options: Parameters<typeof inner.doStream>[0]) => {
        const { stream } = await inner.doStream(options);
        if (!broken) return { stream };
        broken = false;
        const error = apiError(529);
        let parts = 0;
        const cut = new TransformStream({
          transform: (part, controller) => (++parts > 3 ? controller.error(error) : controller.enqueue(part)),
        });
        return { stream: stream.pipeThrough(cut) };
      },
    };
    const texts: string[] = [];
    const { outcome, records } = await ran(async () => {
      let text = "";
      texts.push("start");
      const { textStream } = streamText({ model: durableModel(model as never), prompt: "hello" });
      for await (const part of textStream) {
        text += part;
        texts.push(part);
      }
      return text;
    });
    expect(outcome).toBe("a whole answer");
    expect(texts.filter((text) => text === "start")).toHaveLength(2);
    expect(records.filter(({ kind }) => kind === "step.failed")).toHaveLength(1);
  });

  it("reports a cancellation or an exhausted budget as it is", async () => {
    const model = new ScriptedLanguageModel("v4", () => ({ text: "yes" }));
    const { outcome } = await ran(
      async () => (await generateText({ model: durableModel(model), prompt: "hello", maxOutputTokens: 100 })).text,
      { budget: { tokens: 50 } },
    );
    expect(outcome).toMatchObject({ code: "TAPE_BUDGET_EXCEEDED" });
    expect(model.calls).toBe(0);
  });

  it("never spends more than the cap, with two agents at once", async () => {
    const model = new ScriptedLanguageModel("v4", () => ({ text: "yes" }));
    const priced = durableModel(model, { price: { scripted: { input: 1_000, output: 1_000 } } });
    const { tape } = await ran(
      async (run) => {
        const agent = (name: string) =>
          run.lane(name, async () => {
            for (;;) await generateText({ model: priced, prompt: "hello", maxOutputTokens: 30 });
          });
        await Promise.allSettled([agent("a"), agent("b")]);
      },
      { budget: { tokens: 500, calls: 12 } },
    );
    const budgets = await tape.store.read.budgets(tape.tape.tenant, "run");
    const spent = Object.fromEntries(budgets.map(({ unit, spent, reserved }) => [unit, [spent, reserved].map(Number)]));
    expect(spent.tokens![0]).toBeLessThanOrEqual(500_000_000);
    expect(spent.calls![0]).toBe(model.calls * 1_000_000);
    expect(model.calls).toBeGreaterThan(5);
    expect(model.calls).toBeLessThanOrEqual(12);
    for (const [, reserved] of Object.values(spent)) expect(reserved).toBe(0);
  });

  it("refuses tools of the provider if it must, and what is no model", async () => {
    const model = new ScriptedLanguageModel("v4", () => ({ text: "yes" }));
    const prompt = [{ role: "user", content: [{ type: "text", text: "x" }] }];
    const tools = [{ type: "provider", id: "openai.web_search", name: "web_search", args: {} }];
    const { outcome } = await ran(() =>
      durableModel(model, { refuseProviderTools: true }).doGenerate({ prompt, tools } as never),
    );
    expect(String(outcome)).toContain("the provider executes web_search");
    expect(() => durableModel("openai/gpt-6" as never)).toThrow(/not "openai\/gpt-6": pass a model of a provider/);
    expect(() => durableModel({ ...model, specificationVersion: "v2" } as never)).toThrow(/AI SDK 6 or 7/);
    expect(() => durableModel(model, { agnet: "x" } as never)).toThrow(/did you mean agent/);
    await expect(async () => durableModel(model).doGenerate({ prompt } as never)).rejects.toThrow(/TAPE_NO_RUN/);
  });

  it("of 200 turns makes a journal of less than 1 MB", async () => {
    const model = durableModel(new ScriptedLanguageModel("v4", (turn) => ({ text: `${turn} ${"a".repeat(1_200)}` })));
    const { records } = await ran(async () => {
      const messages: ModelMessage[] = [];
      for (let k = 0; k < 200; k++) {
        messages.push({ role: "user", content: `${k} ${"q".repeat(800)}` });
        messages.push(...(await generateText({ model, messages })).response.messages);
      }
    });
    expect(records.filter(({ kind }) => kind === "decision.made")).toHaveLength(200);
    const bytes = records.reduce((sum, { data }) => sum + sizeOf(encode(data)), 0);
    expect(bytes).toBeGreaterThan(400_000);
    expect(bytes).toBeLessThan(1_000_000);
  });
});

describe("a part of an answer", () => {
  const metadata = fc.option(fc.dictionary(fc.string(), fc.jsonValue()), { nil: undefined });
  const part = fc.oneof(
    fc.record({ type: fc.constantFrom("text", "reasoning"), text: fc.string(), providerMetadata: metadata }),
    fc.record({
      type: fc.constant("tool-call"),
      toolCallId: fc.string(),
      toolName: fc.string(),
      input: fc.oneof(fc.json(), fc.string()),
      providerExecuted: fc.option(fc.boolean(), { nil: undefined }),
    }),
    fc.record({
      type: fc.constant("tool-result"),
      toolCallId: fc.string(),
      toolName: fc.string(),
      result: fc.jsonValue(),
    }),
    fc.record({ type: fc.constant("file"), mediaType: fc.string(), data: fc.oneof(fc.string(), fc.uint8Array()) }),
    fc.record({ type: fc.constant("source"), sourceType: fc.constant("url"), id: fc.string(), url: fc.string() }),
  );
  it("is restored from its record", () => {
    const set = (value: object): object =>
      Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined));
    fc.assert(
      fc.property(part, (given) => {
        expect(set(contentOf(partOf(given)))).toEqual(set(given));
      }),
      { numRuns: 300 },
    );
  });
});

import { readUIMessageStream, type UIMessage, type UIMessageChunk, uiMessageChunkSchema } from "ai";
import { uiMessageChunkSchema as uiMessageChunkSchema6 } from "ai-6";
import { describe, expect, it, onTestFinished } from "vitest";
import { chatRoutes } from "../../src/ai/chat-routes.ts";
import { type UiChunk, UiChunks } from "../../src/ai/ui-chunks.ts";
import { uiResponse, uiStream } from "../../src/ai/ui-stream.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { treasury, versions } from "./treasury.ts";

async function collected<T>(stream: ReadableStream<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const value of stream) all.push(value);
  return all;
}

/** The message that a client of the SDK has at the end. */
async function messageOf(chunks: readonly UiChunk[]): Promise<UIMessage> {
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk as unknown as UIMessageChunk);
      controller.close();
    },
  });
  let last: UIMessage | undefined;
  for await (const message of readUIMessageStream({ stream })) last = structuredClone(message);
  return last!;
}

type Schema = () => { validate?: (value: unknown) => unknown };

async function assertKnown(chunks: readonly UiChunk[], schema: unknown): Promise<void> {
  for (const chunk of chunks) {
    const result = await (schema as Schema)().validate!(chunk);
    expect(result, JSON.stringify(chunk)).toMatchObject({ success: true });
  }
}

async function openApp(runner: ReturnType<typeof treasury>["runner"]): Promise<Tape> {
  const app = await Tape.open({ store: "memory:", runner, log: "silent" });
  onTestFinished(() => app.close());
  return app;
}

const parts = ({ parts: all }: UIMessage): unknown[] =>
  all.map(({ type, ...part }) => {
    if ("text" in part) return [type, part.text];
    return "state" in part ? [type, part.state, "output" in part ? part.output : undefined] : [type];
  });

const whole = [
  ["step-start"],
  ["text", "I look it up. "],
  ["tool-search", "output-available", { found: "invoice 2026-117", at: new Date(0) }],
  ["step-start"],
  ["reasoning", "it is due"],
  ["text", "I pay it now. "],
  ["tool-pay", "output-available", { receipt: "r1" }],
  ["step-start"],
  ["text", "Paid 250 for invoice 2026-117."],
];

describe("uiStream", () => {
  it.each(versions)("is a message for clients of AI SDK $sdk, streamed or not", async (version) => {
    for (const mode of ["generate", "stream"] as const) {
      const { chat, runner } = treasury(version, mode);
      const app = await openApp(runner);
      await app.start(chat, "Pay", { id: "chat-7" });
      const chunks = await collected(uiStream(app, "chat-7"));
      await assertKnown(chunks, version.sdk === 7 ? uiMessageChunkSchema : uiMessageChunkSchema6);
      expect(chunks[0]).toEqual({ type: "start", messageId: "chat-7" });
      expect(chunks.at(-1)).toEqual({ type: "finish", finishReason: "stop" });
      expect(parts(await messageOf(chunks))).toEqual(whole);
    }
  });

  it("takes back the half step of an attempt that was lost", async () => {
    const chunks = new UiChunks("run");
    const cursor = "1.1";
    const message = { role: "assistant", parts: [{ type: "text", text: "whole" }] };
    const events = [
      { type: "turn-started", pos: 1 },
      { type: "text", pos: 1, text: "hal" },
      { type: "turn-reset", pos: 1 },
      { type: "turn-started", pos: 1 },
      { type: "text", pos: 1, text: "who" },
      { type: "text", pos: 1, text: "le" },
      { type: "turn-ended", pos: 1, name: "a 1", value: { message, hash: "h", finish: "stop" } },
      { type: "turn-started", pos: 1_000_001 },
      { type: "text", pos: 1_000_001, text: "a sub-agent" },
      { type: "ended", status: "COMPLETED" },
    ] as const;
    const all = events.flatMap((event) => chunks.of({ ...event, cursor } as never));
    await assertKnown(all, uiMessageChunkSchema);
    expect(all.map(({ type }) => type)).toContain("reset-step");
    expect(parts(await messageOf(all))).toEqual([["step-start"], ["text", "whole"]]);
    const app = {
      streams: {
        follow: async function* () {
          for (const event of events) yield { ...event, cursor } as never;
        },
      },
    };
    const ended = await collected(uiStream(app as never, "run", { onReset: "end" }));
    expect(ended.map(({ type }) => type)).toEqual(["start", "start-step", "text-start", "text-delta"]);
  });

  it("shows why a run failed, and a cancelled one as aborted", () => {
    const ended = (status: string, outcome: unknown) =>
      new UiChunks("run").of({ type: "ended", status, outcome, cursor: "1.0" });
    expect(ended("FAILED", new Error("no model"))).toContainEqual({ type: "error", errorText: "FAILED: no model" });
    expect(ended("CANCELLED", undefined).map(({ type }) => type)).toEqual(["start", "abort", "finish"]);
  });

  it("shows the result of a local tool and the words of a denied one from the next request", async () => {
    const chunks = new UiChunks("run");
    const turn = (pos: number, message: unknown, request: unknown) =>
      chunks.of({ type: "turn-ended", pos, name: "a", cursor: "1.0", value: { message, hash: "h" }, request });
    const call = (id: string) => ({ type: "tool_call", id, name: "add", input: {} });
    turn(1, { role: "assistant", parts: [call("c1"), call("c2")] }, { messages: [] });
    const output = (id: string, value: object) => ({ type: "tool_result", id, output: value });
    const results = [output("c1", { type: "json", value: 3 }), output("c2", { type: "error-text", value: "denied" })];
    const all = turn(2, { role: "assistant", parts: [] }, { messages: [{ role: "tool", parts: results }] });
    expect(all.slice(0, 2)).toEqual([
      { type: "tool-output-available", toolCallId: "c1", output: 3 },
      { type: "tool-output-error", toolCallId: "c2", errorText: "denied" },
    ]);
  });
});

describe("uiResponse", () => {
  it("is resumed behind the last event that was received", async () => {
    const { chat, runner } = treasury(versions[0], "stream");
    const app = await openApp(runner);
    await (await app.start(chat, "Pay", { id: "chat-7" })).result();
    const response = uiResponse(app, "chat-7");
    expect(response.headers.get("x-vercel-ai-ui-message-stream")).toBe("v1");
    const events = (await response.text()).trim().split("\n\n");
    expect(events.at(-1)).toBe("data: [DONE]");
    const [, id] = /^id: (.+)$/m.exec(events.findLast((event) => event.includes("tool-output"))!)!;
    const rest = (await uiResponse(app, "chat-7", { after: id! }).text()).trim().split("\n\n");
    expect(rest.filter((event) => event.includes("delta")).length).toBeGreaterThan(0);
    expect(rest.length).toBeLessThan(events.length / 2);
    expect(rest.slice(-3)).toEqual(events.slice(-3));
  });
});

describe("the routes of a chat", () => {
  const user = (text: string) => ({ id: "m1", role: "user", parts: [{ type: "text", text }] });
  const post = (body: unknown): Request =>
    new Request("http://a/api/chat", { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) });
  const get = new Request("http://a/api/chat/c7/stream");
  const chunksIn = async (response: Response): Promise<UiChunk[]> =>
    (await response.text())
      .split("\n\n")
      .flatMap((event) => (event.includes("data: {") ? [JSON.parse(event.slice(event.indexOf("data: ") + 6))] : []));

  it("start a turn once, answer its approval, and resume it", async () => {
    const { chat, runner, bank } = treasury(versions[0], "stream", { approve: true });
    const app = await openApp(runner);
    const routes = chatRoutes(app, chat, {
      input: ({ messages }) => String(messages.length),
      start: { budget: { calls: 10 } },
    });
    expect((await routes.GET(get, "c7")).status).toBe(204);
    const body = { id: "c7", messages: [user("Pay")], trigger: "submit-message" };
    const first = (await routes.POST(post(body))).body!.getReader();
    let text = "";
    while (!text.includes("tool-approval-request")) text += new TextDecoder().decode((await first.read()).value);
    await first.cancel();
    const [, approvalId] = /"approvalId":"([^"]+)"/.exec(text)!;
    const again = await routes.POST(post(body)); // a double click is one turn
    await again.body!.cancel();
    const resumed = await routes.GET(get, "c7");
    expect(resumed.status).toBe(200);

    const answer = (id: string, approved: boolean) => ({
      ...body,
      messages: [
        user("Pay"),
        {
          id: "chat/c7/1",
          role: "assistant",
          parts: [{ type: "tool-pay", state: "approval-responded", toolCallId: "call-2", approval: { id, approved } }],
        },
      ],
    });
    const foreign = await routes.POST(post({ ...answer(approvalId!, true), id: "other" }));
    expect(foreign.status).toBe(400);
    const rest = await chunksIn(await routes.POST(post(answer(approvalId!, true))));
    expect(rest.at(-1)).toEqual({ type: "finish", finishReason: "stop" });
    expect(bank.applied("pay")).toHaveLength(1);
    expect(parts(await messageOf(await chunksIn(resumed)))).toHaveLength(whole.length);
    expect((await app.runs.list()).map(({ id }) => id)).toEqual(["chat/c7/1"]);
    expect((await routes.GET(get, "c7")).status).toBe(204);
    await chunksIn(await routes.POST(post(answer(approvalId!, false)))); // too late: it follows the run, and changes nothing
    expect(bank.applied("pay")).toHaveLength(1);
  });

  it("start another run where an answer is generated again", async () => {
    const echo = workflow("echo", async (_tape, messages: readonly unknown[]) => messages.length);
    const app = await openApp(createRunner({ workflows: [echo] }));
    const routes = chatRoutes(app, echo as never);
    const body = { id: "c7", messages: [user("hello")] };
    await chunksIn(await routes.POST(post(body)));
    for (let k = 0; k < 2; k++) await chunksIn(await routes.POST(post({ ...body, trigger: "regenerate-message" })));
    expect((await app.runs.list()).map(({ id }) => id).sort()).toEqual([
      "chat/c7/1",
      "chat/c7/1/again-1",
      "chat/c7/1/again-2",
    ]);
    expect((await routes.POST(post({ ...body, messages: [user("other words")] }))).status).toBe(409);
  });

  it.each([
    ["no JSON", "{", 400],
    ["no messages", { id: "c7" }, 400],
    ["a message without parts", { id: "c7", messages: [{ role: "user" }] }, 400],
    ["an id with a slash", { id: "a/b", messages: [] }, 400],
    ["a long id", { id: "a".repeat(201), messages: [] }, 400],
    ["a body of 5 MB", "x".repeat(5_000_000), 413],
  ])("refuse %s", async (_name, body, status) => {
    const { chat, runner } = treasury(versions[0], "stream");
    const app = await openApp(runner);
    expect((await chatRoutes(app, chat).POST(post(body))).status).toBe(status);
    expect(await app.runs.list()).toEqual([]);
  });
});

import { describe, expect, it, onTestFinished } from "vitest";
import type { ModelRecord, RequestNote } from "../../src/agent/conversation.ts";
import { encode, sizeOf } from "../../src/base/codec.ts";
import type { JournalRecord, RecordData } from "../../src/model/records.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";
import { assistant, ProviderError, ScriptedModel, user } from "./scripted.ts";

type Made = RecordData<"decision.made"> & { request: RequestNote; value: ModelRecord };

async function ran(
  run: (tape: TapeContext) => Promise<unknown>,
  budget?: Record<string, number>,
): Promise<{ outcome: unknown; status: string; records: JournalRecord[]; made: Made[]; logged: string[]; ms: number }> {
  const logged: string[] = [];
  const flow = workflow("flow", run);
  const log = (_level: string, event: string): void => void logged.push(event);
  const tape = await VirtualTape.open({ runner: createRunner({ workflows: [flow] }), log });
  onTestFinished(() => tape.close());
  const from = tape.time.now;
  const handle = await tape.start(flow, undefined, { id: "run", ...(budget && { budget }) });
  const [view] = await tape.settle();
  const records = await tape.store.read.journal(tape.tape.tenant, { run: handle.id });
  const made = records.flatMap(({ kind, data }) => (kind === "decision.made" ? [data as Made] : []));
  return { outcome: view!.outcome, status: view!.status, records, made, logged, ms: tape.time.now - from };
}

describe("a model call", () => {
  it("notes only messages that the conversation does not have, and a hash of the others", async () => {
    const model = new ScriptedModel((k) => assistant(`answer ${k}`));
    const { made } = await ran(async () => {
      const messages = [user("one")];
      for (const next of ["two", "three"]) messages.push(await model.ask(messages), user(next));
      await model.ask(messages);
      return await model.ask([user("another conversation")]);
    });
    expect(made.map(({ name, model, usage }) => [name, model, usage])).toEqual(
      [1, 2, 3, 4].map((k) => [`clerk ${k}`, "local/scripted", { input: 10, output: 5 }]),
    );
    expect(made.map(({ request }) => request.messages)).toEqual([
      [user("one")],
      [user("two")],
      [user("three")],
      [user("another conversation")],
    ]);
    expect(made.map(({ request }) => request.before?.messages)).toEqual([undefined, 2, 4, undefined]);
    expect(made[1]!.request.before!.hash).toMatch(/^[0-9a-f]{32}$/);
    expect(made[1]!.value).toMatchObject({
      message: assistant("answer 2"),
      finish: "stop",
      hash: made[1]!.request.hash,
    });
  });

  it.each([
    ["a URL", (k: number) => new URL(`https://example.org/${k}`)],
    ["a date", (k: number) => new Date(k)],
    ["bytes", (k: number) => Buffer.from([k])],
    ["a class", (k: number) => Object.assign(new (class Usage {})(), { k })],
    ["a field that is undefined", (k: number) => (k === 0 ? { at: undefined } : {})],
    ["a longer list", (k: number) => Array.from({ length: k })],
  ])("compares messages by value: %s", async (_, of) => {
    const model = new ScriptedModel((k) => assistant(`answer ${k}`));
    const file = (k: number) => ({ role: "user", parts: [{ type: "file", data: of(k) }] }) as never;
    const { made } = await ran(async () => {
      for (const k of [0, 0, 1]) await model.ask([file(k), user("same")]);
    });
    expect(made.map(({ request }) => request.before?.messages)).toEqual([undefined, 2, undefined]);
  });

  it("is recorded: replay calls nothing and returns the same", async () => {
    const model = new ScriptedModel((k) => assistant(`answer ${k}`));
    const { outcome } = await ran(async (tape) => {
      const first = await model.ask([user("one")]);
      await tape.sleep("1h"); // parks, so that a replay follows
      return [first, await model.ask([user("one"), first, user("two")])];
    });
    expect(outcome).toEqual([assistant("answer 1"), assistant("answer 2")]);
    expect(model.calls).toBe(2);
  });

  it.each([
    ["2 s", 2_000],
    ["10 min", 600_000],
  ])("waits as long as the provider wants: %s", async (_name, retryAfterMs) => {
    const model = new ScriptedModel((k) => {
      if (k <= 2) throw new ProviderError(429, retryAfterMs);
      return assistant("at last");
    });
    const { outcome, records, ms, made } = await ran(() => model.ask([user("hello")]));
    expect(outcome).toEqual(assistant("at last"));
    expect(model.calls).toBe(3);
    expect(ms).toBeGreaterThanOrEqual(2 * retryAfterMs);
    expect(ms).toBeLessThan(2 * retryAfterMs + 10_000);
    const failed = records.flatMap(({ kind, data }) => (kind === "step.failed" ? [data] : []));
    expect(failed.map((data) => (data as RecordData<"step.failed">).timer)).toEqual(
      retryAfterMs > 2_000 ? [true, true] : [undefined, undefined],
    );
    expect(made[0]!.request.messages).toEqual([user("hello")]);
  });

  it("fails for good with the framework's error, live and on replay", async () => {
    const model = new ScriptedModel(() => {
      throw new ProviderError(400);
    });
    const seen: unknown[] = [];
    await ran(async (tape) => {
      await model.ask([user("hello")]).catch((error: unknown) => seen.push(error));
      await tape.sleep("1h");
    });
    expect(model.calls).toBe(1);
    expect(seen).toHaveLength(2);
    for (const error of seen) expect(error).toMatchObject({ name: "ProviderError", status: 400 });
    expect(seen.every((error) => error instanceof ProviderError)).toBe(true);
  });

  it("parks and starts again after text was shown, so that no framework sees two beginnings", async () => {
    const frames: string[] = [];
    const model = new ScriptedModel((k, { shown }) => {
      shown();
      frames.push(`call ${k}`);
      if (k === 1) throw new ProviderError(529);
      return assistant("whole");
    });
    const { outcome, records } = await ran(async () => {
      frames.push("framework");
      return await model.ask([user("hello")]);
    });
    expect(outcome).toEqual(assistant("whole"));
    expect(frames).toEqual(["framework", "call 1", "framework", "call 2"]);
    expect(records.filter(({ kind }) => kind === "step.failed")).toHaveLength(1);
  });

  it("survives a stream that is full: readers see no more, and the answer is recorded", async () => {
    const model = new ScriptedModel(async (_k, { emit }) => {
      await emit("first");
      await emit("x".repeat(100_000));
      await emit("last");
      return assistant("whole");
    });
    const { outcome, logged } = await ran(() => model.ask([user("hello")]));
    expect(outcome).toEqual(assistant("whole"));
    expect(logged.filter((event) => event === "stream.full")).toHaveLength(1);
  });

  it("reserves its budget before the call and charges what it used", async () => {
    const model = new ScriptedModel(() => assistant("yes"));
    const price = { scripted: { input: 100_000, output: 200_000 } };
    const { status, outcome, made, records } = await ran(
      async () => {
        await model.ask([user("one")], { price });
        return await model.ask([user("two")], { price });
      },
      { tokens: 125 },
    );
    expect(status).toBe("FAILED");
    expect(outcome).toMatchObject({ code: "TAPE_BUDGET_EXCEEDED" });
    expect(model.calls).toBe(1); // 15 of 125 are spent, and a second reservation is for more than 110
    expect(made[0]!.usage).toEqual({ input: 10, output: 5, usd: 2 });
    const charged = records.flatMap(({ kind, data }) => (kind === "budget.charged" ? [data] : []));
    expect(charged[0]).toMatchObject({ spent: { tokens: 15_000_000, calls: 1_000_000, usd: 2_000_000 } });
  });

  it("presumes the tokens of a provider that reports none", async () => {
    const model = new ScriptedModel(() => assistant("x".repeat(350)));
    model.usage = undefined;
    const { made } = await ran(() => model.ask([user("y".repeat(700))]));
    expect(made[0]!.usage!.input).toBeGreaterThan(200);
    expect(made[0]!.usage!.output).toBeGreaterThan(100);
  });

  it("keeps the recorded answer when the request changes, and the next call notes it", async () => {
    let clock = 0;
    const model = new ScriptedModel((k) => assistant(`answer ${k}`));
    const { outcome, made, logged } = await ran(async (tape) => {
      const first = await model.ask([user(`at ${++clock}`)]);
      await tape.sleep("1h");
      return [first, await model.ask([user("two")])];
    });
    expect(outcome).toEqual([assistant("answer 1"), assistant("answer 2")]);
    expect(made[1]!.request.changed).toEqual(["clerk 1"]);
    expect(logged).toContain("request.changed");
  });

  it("is a divergence in strict mode when the request changes", async () => {
    let clock = 0;
    const model = new ScriptedModel(() => assistant("answer"));
    const { status, logged } = await ran(async (tape) => {
      await model.ask([user(`at ${++clock}`)], { strict: true });
      await tape.sleep("1h");
    });
    expect(status).toBe("STUCK");
    expect(logged).toContain("run.stuck");
    expect(model.calls).toBe(1);
  });

  const drawing = (bytes: number): ScriptedModel => {
    const data = new Uint8Array(bytes).fill(7);
    return new ScriptedModel(() => ({ role: "assistant", parts: [{ type: "file", mediaType: "image/png", data }] }));
  };

  it("records a large file beside the journal, and replays it whole", async () => {
    const model = drawing(5 * 1024 * 1024);
    const { outcome, made } = await ran(async (tape) => {
      const { parts } = await model.ask([user("draw")]);
      await tape.sleep("1h");
      const [file] = parts as readonly { data: Uint8Array }[];
      return [file!.data.length, file!.data.at(-1)];
    });
    expect(outcome).toEqual([5 * 1024 * 1024, 7]);
    expect(model.calls).toBe(1);
    expect(made).toHaveLength(1);
  });

  it("refuses a file that no record can hold, and is paid for", async () => {
    const model = drawing(32 * 1024 * 1024);
    const { outcome, records } = await ran(() => model.ask([user("draw")]));
    expect(outcome).toMatchObject({ code: "TAPE_TOO_LARGE" });
    expect(String(outcome)).toContain("1 files");
    expect(model.calls).toBe(1);
    const charged = records.find(({ kind }) => kind === "budget.charged")!.data;
    expect(charged).toMatchObject({ spent: { tokens: 15_000_000 } });
  });

  it("cuts what it notes of a long request", async () => {
    const model = new ScriptedModel(() => assistant("short"));
    const long = Array.from({ length: 30 }, (_, k) => user(`${k} ${"x".repeat(80_000)}`));
    const image = { type: "file", mediaType: "image/png", data: new Uint8Array(100_000) } as const;
    const { made, status } = await ran(() => model.ask([...long, { role: "user", parts: [image] }]));
    expect(status).toBe("COMPLETED");
    const { messages } = made[0]!.request;
    expect(messages).toHaveLength(31);
    expect(messages[0]).toEqual({ role: "user", parts: [], cut: true });
    expect(messages[29]!.parts[0]).toMatchObject({ type: "text", cut: 80_003 });
    expect(messages[30]!.parts[0]).toEqual({
      type: "file",
      mediaType: "image/png",
      bytes: 100_000,
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  it("of 200 turns of 2 KB makes a journal of less than 1 MB", async () => {
    const model = new ScriptedModel((k) => assistant(`${k} ${"a".repeat(1_200)}`));
    const { records, made } = await ran(async () => {
      const messages = [];
      for (let k = 0; k < 200; k++) {
        messages.push(user(`${k} ${"q".repeat(800)}`));
        messages.push(await model.ask(messages));
      }
    });
    expect(made).toHaveLength(200);
    const bytes = records.reduce((sum, { data }) => sum + sizeOf(encode(data)), 0);
    expect(bytes).toBeGreaterThan(400_000);
    expect(bytes).toBeLessThan(1_000_000);
  });
});

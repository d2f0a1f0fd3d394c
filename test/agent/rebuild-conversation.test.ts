import { describe, expect, it, onTestFinished } from "vitest";
import { toolApproval } from "../../src/agent/approval.ts";
import type { Message } from "../../src/agent/conversation.ts";
import { withoutContent } from "../../src/agent/hidden.ts";
import { rebuildConversation } from "../../src/agent/rebuild-conversation.ts";
import { type DurableTool, durableTool } from "../../src/agent/tool-call.ts";
import type { NewRecord } from "../../src/model/records.ts";
import { type ConversationRequest, readConversation } from "../../src/operator/conversation.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";
import { assistant, ProviderError, ScriptedModel, user } from "./scripted.ts";

const calls = (...of: readonly (readonly [id: string, name: string, input: unknown])[]): Message => ({
  role: "assistant",
  parts: of.map(([id, name, input]) => ({ type: "tool_call", id, name, input })),
});
const results = (id: string, output: unknown): Message => ({
  role: "tool",
  parts: [{ type: "tool_result", id, output }],
});

const child = workflow("child", async () => await new ScriptedModel(() => assistant("from the child")).ask([]));

async function opened(run: (tape: TapeContext) => Promise<unknown>, tools: readonly DurableTool[] = []) {
  const flow = workflow("flow", run);
  const effects = tools.flatMap(({ effect }) => (effect === undefined ? [] : [effect]));
  const runner = createRunner({ workflows: [flow, child], effects });
  const tape = await VirtualTape.open({ runner, log: "silent" });
  onTestFinished(() => tape.close());
  const { tenant } = tape.tape;
  await tape.start(flow, undefined, { id: "run" });
  await tape.settle();
  return {
    tape,
    page: (request?: ConversationRequest) =>
      tape.time.during(readConversation(tape.store, tenant, "run", request ?? {})),
  };
}

const record = (seq: number, token: number, one: NewRecord) =>
  ({ ...one, journal: 7, seq, token: BigInt(token), at: 1_000 + 100 * seq }) as never;

describe("the conversation of a run", () => {
  it("is rebuilt from deltas: messages, answers, usage, attempts, later requests that changed", async () => {
    let clock = 0;
    const model = new ScriptedModel((k) => {
      if (k === 2) throw new ProviderError(503);
      return assistant(`answer ${k}`);
    });
    const price = { scripted: { input: 1_000_000, output: 0 } };
    const { page } = await opened(async (tape) => {
      const first = await model.ask([user(`it is ${++clock}`)], { price });
      await tape.sleep("1h"); // parks: a replay follows, with another request
      return await model.ask([user(`it is ${clock}`), first, user("two")], { price });
    });
    const { turns, sums, status } = await page();
    expect(status).toBe("COMPLETED");
    expect(
      turns.map(({ agent, model: of, messages, before, answer }) => [agent, of, messages, before, answer]),
    ).toEqual([
      ["clerk", "local/scripted", [user("it is 1")], 0, assistant("answer 1")],
      ["clerk", "local/scripted", [user("two")], 2, assistant("answer 3")],
    ]);
    expect(turns.map(({ changed, attempts, lost }) => [changed, attempts, lost])).toEqual([
      [true, 1, 0],
      [undefined, 2, 0],
    ]);
    expect(turns[1]!.failures).toEqual([{ attempt: 1, at: expect.any(Number), error: "status 503" }]);
    expect(turns[0]!.replayedBy).toHaveLength(1);
    expect(turns[0]!.owner).toBe(turns[0]!.replayedBy[0]); // one process
    expect(turns[1]!.replayedBy).toEqual([]);
    expect(turns[1]!.latencyMs).toBeLessThan(1_000); // without the pause before the second attempt
    expect(sums).toEqual({
      ...{ turns: 2, attempts: 3, lost: 0, input: 20, output: 10, cached: 0, reasoning: 0, usd: 20, presumed: {} },
      models: ["local/scripted"],
      bars: turns.map(({ pos }) => ({ pos, agent: "clerk", input: 10, output: 5, usd: 10 })),
    });
  });

  it("has each tool call with its effect, its approval and its author, the result that the model read", async () => {
    const pay = durableTool("bank", "pay", ({ amount }: { amount: number }) => ({ paid: amount }), {
      ...{ semantics: "idempotent", approve: true },
    });
    const model = new ScriptedModel((k) => (k < 3 ? calls(["c1", "pay", { amount: k }]) : assistant("done")));
    const { tape, page } = await opened(async () => {
      const messages: Message[] = [user("pay twice")];
      for (let k = 0; k < 2; k++) {
        const answer = await model.ask(messages);
        const outcome = await pay.call({ call: "c1", input: { amount: k + 1 } }); // the model repeats its ids
        messages.push(answer, results("c1", outcome.ok ? outcome.value : outcome.words));
      }
      return await model.ask(messages);
    }, [pay]);
    const waiting = (await page()).turns[0]!.calls[0]!;
    expect(waiting).toMatchObject({ id: "c1", name: "pay", approval: { name: "tool approval", status: "OPEN" } });
    expect(waiting.effect).toBeUndefined();
    for (let k = 0; k < 2; k++) {
      const call = (await page()).turns.at(-1)!.calls[0]!;
      const binds = call.approval!.binds!;
      await tape.signal("run", toolApproval, { approved: k === 0 }, { binds, by: "ada" } as never);
      await tape.settle();
    }
    const { turns } = await page();
    expect(turns).toHaveLength(3);
    expect(turns[0]!.calls).toEqual([
      {
        ...{ id: "c1", name: "pay", input: { amount: 1 }, output: { paid: 1 } },
        effect: expect.objectContaining({ name: "bank.pay", status: "CONFIRMED", attempts: 1, value: { paid: 1 } }),
        approval: expect.objectContaining({ status: "RECEIVED", approved: true, by: "ada" }),
      },
    ]);
    expect(turns[0]!.calls[0]!.effect!.token).toMatch(/^\d+$/);
    expect(turns[1]!.calls[0]).toMatchObject({ output: "the call was denied", approval: { approved: false } });
    expect(turns[1]!.calls[0]!.effect).toBeUndefined();
  });

  it("nests sub-agents under their tool calls, in a lane and as a child run", async () => {
    const inner = new ScriptedModel(() => assistant("from the lane"));
    const ask = durableTool("team", "ask", () => inner.ask([user("sub")], {}, "helper"), { local: true });
    const model = new ScriptedModel((k) =>
      k === 1 ? calls(["c1", "ask", {}], ["c2", "research", {}]) : assistant("done"),
    );
    const { page } = await opened(async (tape) => {
      const answer = await model.ask([user("go")]);
      await ask.call({ call: "c1", input: {} });
      await tape.lane("research c2", () => tape.call(child, undefined));
      return await model.ask([user("go"), answer, results("c1", "x"), results("c2", "y")]);
    });
    const { turns } = await page();
    expect(turns.map(({ agent, under }) => [agent, under])).toEqual([
      ["clerk", undefined],
      ["helper", { pos: turns[0]!.pos, call: "c1" }],
      ["clerk", undefined],
    ]);
    expect(turns[0]!.calls[1]!.children).toEqual([
      { pos: expect.any(Number), run: expect.stringMatching(/^run\./), workflow: "child", status: "COMPLETED" },
    ]);
  });

  it("counts a call that was lost with its term as presumed, and shows the open one", () => {
    const reserved = { pos: 0, rootRun: 7, amounts: { tokens: 100_000_000, calls: 1_000_000 } };
    const term = (seq: number, token: number, label: string) =>
      record(seq, token, {
        kind: "term.started",
        data: { owner: `${label}/1`, label, reactor: "recovery", ttlMs: 10_000, reason: "start" },
      });
    const lost = [
      term(1, 1, "worker-a"),
      record(2, 1, { kind: "budget.reserved", data: reserved }),
      term(3, 2, "worker-b"),
      record(4, 2, { kind: "budget.presumed", data: reserved }),
    ];
    const open = rebuildConversation(lost);
    expect(open.turns).toMatchObject([
      { pos: 1, open: true, attempts: 2, lost: 1, presumed: { tokens: 100, calls: 1 }, owner: "worker-b" },
    ]);
    const value = { message: assistant("hello"), hash: "h" };
    const data = { pos: 1, name: "clerk 1", model: "a/b", value, usage: { input: 3, output: 4 } };
    const { turns, sums } = rebuildConversation([...lost, record(6, 2, { kind: "decision.made", data })]);
    expect(turns).toMatchObject([
      { agent: "clerk", answer: assistant("hello"), lost: 1, attempts: 2, latencyMs: 200, owner: "worker-b" },
    ]);
    expect(turns[0]!.open).toBeUndefined();
    expect(sums).toMatchObject({ turns: 1, attempts: 2, lost: 1, input: 3, presumed: { tokens: 100, calls: 1 } });
  });

  it("of a fork has the turns that it kept, and does not count them", () => {
    const kept = [{ kind: "decision.made", data: { pos: 1, name: "clerk 1", value: "yes", usage: { input: 9 } } }];
    const made = { pos: 3, name: "clerk 2", value: { approved: true }, usage: { input: 1, output: 2 } };
    const { turns, sums } = rebuildConversation([
      record(1, 1, { kind: "fork.kept", data: { records: kept } }),
      record(2, 1, { kind: "decision.made", data: made }),
    ]);
    expect(turns.map((turn) => [turn.kept, turn.answer])).toEqual([
      [true, assistant("yes")],
      [undefined, assistant('{"approved":true}')],
    ]);
    expect(sums).toMatchObject({ turns: 1, input: 1, output: 2 });
  });

  it("without content keeps roles, names, lengths, tokens and outcomes, and no word", async () => {
    const secret = "canary-7f3a";
    const tool = durableTool("bank", "pay", () => ({ secret }), { semantics: "idempotent", businessKey: () => secret });
    const model = new ScriptedModel((k) => {
      if (k === 1) throw new ProviderError(503);
      return k === 2 ? calls(["c1", "pay", { secret }]) : assistant(secret);
    });
    const { page } = await opened(async () => {
      const answer = await model.ask([user(secret)]);
      await tool.call({ call: "c1", input: { secret } });
      const file = { type: "file", mediaType: "image/png", data: secret } as const;
      return await model.ask([user(secret), answer, results("c1", secret), { role: "user", parts: [file] }]);
    }, [tool]);
    const shown = await page();
    expect(JSON.stringify(shown)).toContain(secret);
    const hidden = await page({ content: false });
    expect(JSON.stringify(hidden)).not.toContain(secret);
    expect(hidden).toMatchObject({ hidden: true, sums: shown.sums });
    expect(hidden.turns[0]!.messages).toEqual([
      { role: "user", parts: [{ type: "text", text: "", cut: secret.length }] },
    ]);
    expect(hidden.turns[0]!.calls[0]).toMatchObject({ id: "c1", name: "pay", effect: { status: "CONFIRMED" } });
    expect(hidden.turns[1]!.usage).toEqual({ input: 10, output: 5 });
    const settings = { ...shown.turns[0]!, settings: { secret }, error: secret };
    expect(JSON.stringify(withoutContent(settings))).not.toContain(secret);
  });

  it("has texts that the store keeps beside the journal, and the sizes of files", async () => {
    const long = (k: number): string => `answer ${k} ${"x".repeat(100_000)}`;
    const many = Array.from({ length: 30 }, (_, k) => ({ type: "text", text: `${k} ${"y".repeat(50_000)}` }) as const);
    const file = { type: "file", mediaType: "image/png", data: new Uint8Array(200_000) } as const;
    const answers: Message[] = [
      assistant(long(1)),
      { role: "assistant", parts: [...many, { type: "tool_call", id: "c-1", name: "pay", input: { invoice: 7 } }] },
      { role: "assistant", parts: [file] },
    ];
    const model = new ScriptedModel((k) => answers[k - 1]!);
    const { tape, page } = await opened(async () => {
      for (let k = 0; k < answers.length; k++) await model.ask([user(`${k}`)]);
    });
    const records = await tape.store.read.journal(tape.tape.tenant, { run: "run" });
    const made = records.flatMap(({ kind, data }) => (kind === "decision.made" ? [data.value] : []));
    expect(made.map((value) => JSON.stringify(value).length < 1_000)).toEqual([true, true, true]); // references
    const { turns } = await page();
    expect(turns[0]!.answer).toEqual(assistant(long(1)));
    expect(turns[1]!.answer!.parts.slice(0, 30)).toEqual(many);
    expect(turns[1]!.calls).toMatchObject([{ id: "c-1", name: "pay", input: { invoice: 7 } }]);
    expect(turns[2]!.answer!.parts).toEqual([{ type: "file", mediaType: "image/png", bytes: expect.any(Number) }]);
    const hidden = await page({ content: false });
    expect(hidden.turns[0]!.answer!.parts).toEqual([{ type: "text", text: "", cut: long(1).length }]);
  });

  it("has the length of a text that is too long for a page", async () => {
    const model = new ScriptedModel(() => assistant("z".repeat(5_000_000)));
    const { page } = await opened(() => model.ask([user("go")]).then(() => {}));
    const [turn] = (await page()).turns;
    expect(turn!.answer!.parts).toMatchObject([{ type: "text", text: "", cut: 5_000_002 }]);
  });

  it("comes in pages, bounded in turns and in text, each with the sums of all", async () => {
    const long = "x".repeat(900_000);
    const model = new ScriptedModel((k) => assistant(k <= 4 ? long : `answer ${k}`));
    const { page } = await opened(async () => {
      for (let k = 0; k < 8; k++) await model.ask([user(`${k}`)]);
    });
    const seen: string[] = [];
    const sizes: number[] = [];
    for (let from: number | undefined = 0; from !== undefined; ) {
      const { turns, next, sums } = await page({ from, limit: 3 });
      expect(sums.turns).toBe(8);
      sizes.push(turns.length);
      seen.push(...turns.map(({ messages }) => JSON.stringify(messages)));
      from = next;
    }
    expect(sizes).toEqual([2, 3, 3]);
    expect(seen).toEqual(Array.from({ length: 8 }, (_, k) => JSON.stringify([user(`${k}`)])));
    expect((await page({ from: 100 })).turns).toEqual([]);
    for (const wrong of [{ limit: 0 }, { limit: 201 }, { from: -1 }, { from: 0.5 }]) {
      await expect(page(wrong)).rejects.toMatchObject({ code: "TAPE_BAD_INPUT" });
    }
  });
});

import { type AgentInputItem, MemorySession, Runner } from "@openai/agents";
import { createRunner, type TapeContext, workflow } from "durable-tape";
import { durableProvider, TapeSession, toolApproval } from "durable-tape/openai-agents";
import { crashAtEveryBoundary } from "durable-tape/testing";
import { expect, it } from "vitest";
import { opened } from "../../agents/suite.ts";
import { bank, pay, policies, search, treasurer } from "../../agents/treasury.ts";
import { noteRounds } from "../../rounds.ts";
import { agentOf } from "./framework.ts";
import { ScriptedModel } from "./scripted-model.ts";

const say = (content: string): AgentInputItem => ({ role: "user", content });
const many = (from: number, count: number) => Array.from({ length: count }, (_, k) => say(`${from + k}`));

type AnySession = Pick<MemorySession, "getItems" | "addItems" | "popItem" | "clearSession" | "applyHistoryTransaction">;
const append = (operationId: string, items: AgentInputItem[]) => (session: AnySession) =>
  session.applyHistoryTransaction({ operationId, transaction: { type: "append_items", items } });
const replace =
  (operationId: string, expectedSuffix: AgentInputItem[], replacement: AgentInputItem[]) => (session: AnySession) =>
    session.applyHistoryTransaction({
      operationId,
      transaction: { type: "replace_suffix", expectedSuffix, replacement },
    });

/** The framework's own session in memory is the reference: the same calls, the same answers. */
const calls: readonly ((session: AnySession) => Promise<unknown>)[] = [
  (session) => session.popItem(),
  (session) => session.addItems(many(0, 3)),
  (session) => session.getItems(2),
  (session) => session.getItems(0),
  (session) => session.popItem(),
  append("a", many(10, 60)),
  append("a", many(10, 60)),
  append("a", many(11, 60)),
  append("b", many(100, 70)),
  (session) => session.getItems(65),
  replace("c", many(160, 10), many(200, 2)),
  replace("d", many(160, 10), many(200, 2)),
  replace("e", [...many(150, 10), ...many(200, 2)], []),
  replace("f", [...many(0, 2), ...many(10, 60), ...many(100, 50)], many(300, 1)),
  append("g", many(400, 51)),
  (session) => session.popItem(),
  (session) => session.clearSession(),
  (session) => session.getItems(),
  append("a", many(500, 1)),
];

it("answers as the framework's own session does, and another run reads the same", async () => {
  const theirs = new MemorySession({ sessionId: "s" });
  let answers = 0;
  const outcome = async (work: Promise<unknown>) =>
    await work.then(
      (value) => value ?? null,
      (error: Error) => error.constructor.name,
    );
  const agent = { effects: [], run: async () => "" };
  const { start } = await opened(agent, async (tape, text) => {
    if (text === "read") return await new TapeSession(tape, "s").getItems();
    const ours = new TapeSession(tape, "s");
    for (const call of calls) {
      const [found, expected] = [await outcome(call(ours)), await outcome(call(theirs))];
      expect(found, call.toString()).toEqual(expected);
      expect(await ours.getItems()).toEqual(await theirs.getItems());
      if (expected !== null) answers += 1;
    }
    return "compared";
  });
  expect((await start("compare")).outcome).toBe("compared");
  expect(answers).toBeGreaterThan(6);
  expect((await start("read", { id: "second" })).outcome).toEqual(await theirs.getItems());
});

it("two turns share a session, and a crash at any boundary neither loses nor repeats an item", {
  timeout: 600_000,
}, async () => {
  const kit = agentOf([search, pay], policies);
  const runner = new Runner({ modelProvider: durableProvider(new ScriptedModel(treasurer)) });
  const turn = (tape: TapeContext, text: string) =>
    runner.run(kit.agent, text, { session: new TapeSession(tape, "chat") });
  const chat = workflow("chat", async (tape, text: string) => {
    await turn(tape, text);
    await turn(tape, "thank you");
    return (await new TapeSession(tape, "chat").getItems()).map(({ type = "message" }) => type);
  });
  let paidOnce = -1; // the round without a crash is not counted
  const { boundaries, rounds, reached, statuses } = await crashAtEveryBoundary({
    ...{ workflow: chat, input: "pay invoice 7", ledger: bank },
    runner: createRunner({ workflows: [chat], effects: kit.effects }),
    signals: [{ gate: toolApproval, value: { approved: true }, times: "always" }],
    outcome: (types) => {
      const all = types as string[];
      // A payment that was proven absent is requested again.
      const again = all.filter((type) => type === "function_call").length - 2;
      return [...all.slice(0, 5), ...all.slice(5 + 3 * again)];
    },
    check: () => {
      expect(bank.applied("pay")).toHaveLength(1);
      paidOnce++;
    },
  });
  expect([statuses, reached]).toEqual([{ COMPLETED: rounds }, rounds]);
  const agent = "two turns of a session";
  noteRounds({ framework: "OpenAI Agents", agent, boundaries: boundaries.length, rounds, paidOnce });
});

it("of two runs that talk in one session at the same time, the second one ends", async () => {
  const agent = { effects: [], run: async () => "" };
  const { tape, start, view } = await opened(agent, async (tape, text) => {
    const session = new TapeSession(tape, "s");
    await session.getItems();
    if (text === "slow") await tape.sleep("1h");
    await session.addItems([say(text)]);
    return (await session.getItems()).length;
  });
  const slow = start("slow", { id: "slow" });
  const quick = start("quick", { id: "quick" });
  await Promise.all([slow, quick]);
  expect((await view("quick")).outcome).toBe(1);
  const { status, outcome } = await view("slow");
  expect([status, (outcome as { code: string }).code]).toEqual(["FAILED", "TAPE_VERSION_CONFLICT"]);
  await tape.settle();
});

import type { MastraDBMessage } from "@mastra/core/agent";
import { Agent } from "@mastra/core/agent";
import { InMemoryStore, type MemoryStorage } from "@mastra/core/storage";
import { Memory } from "@mastra/memory";
import { createRunner, gate, type TapeContext, workflow } from "durable-tape";
import { durableAgent, durableModel, durableTools, TapeStorage, toolApproval } from "durable-tape/mastra";
import { crashAtEveryBoundary } from "durable-tape/testing";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import type { Mode } from "../../agents/framework.ts";
import { opened } from "../../agents/suite.ts";
import { bank, pay, policies, search, treasurer } from "../../agents/treasury.ts";
import { streamed, toolsOf } from "./framework.ts";
import { scriptedModel } from "./scripted-model.ts";

// Mastra waits for 10 ms after it has saved messages, and virtual time would pass meanwhile.
const later = globalThis.setTimeout;
const soon = (work: () => void, ms?: number, ...rest: []) =>
  ms === 10 ? setImmediate(work) : later(work, ms, ...rest);
beforeAll(() => {
  vi.stubGlobal("setTimeout", soon);
});
afterAll(() => {
  vi.unstubAllGlobals();
});

const memoryOf = async (storage: InMemoryStore | TapeStorage): Promise<MemoryStorage> =>
  (await storage.getStore("memory"))!;

const at = (minute: number): Date => new Date(Date.UTC(2026, 0, 1, 0, minute));
const say = (id: string, minute: number, text: string, threadId = "t"): MastraDBMessage => ({
  ...{ id, role: "user", createdAt: at(minute), threadId, resourceId: "ada", type: "text" },
  content: { format: 2, parts: [{ type: "text", text }] },
});
const many = (from: number, count: number, threadId = "t") =>
  Array.from({ length: count }, (_, k) => say(`${threadId}${from + k}`, from + k, `${from + k}`, threadId));
const thread = (id: string, resourceId = "ada") => ({
  ...{ id, resourceId, title: id, metadata: { topic: id }, createdAt: at(id.length), updatedAt: at(id.length) },
});

/** Mastra's own storage in memory is the reference: the same calls, the same answers. */
const calls: readonly ((memory: MemoryStorage) => Promise<unknown>)[] = [
  (memory) => memory.getThreadById({ threadId: "t" }),
  (memory) => memory.saveThread({ thread: thread("t") }),
  (memory) => memory.saveThread({ thread: thread("uu") }),
  (memory) => memory.saveThread({ thread: thread("a/b", "eve") }),
  (memory) => memory.getThreadById({ threadId: "t", resourceId: "eve" }),
  (memory) => memory.saveMessages({ messages: many(0, 60) }),
  (memory) => memory.saveMessages({ messages: [...many(60, 45), ...many(0, 3, "uu")] }),
  (memory) => memory.listMessages({ threadId: "t" }),
  (memory) =>
    memory.listMessages({ threadId: "t", perPage: 10, page: 1, orderBy: { field: "createdAt", direction: "DESC" } }),
  (memory) => memory.listMessages({ threadId: ["t", "uu"], perPage: false }),
  (memory) => memory.listMessages({ threadId: "t", filter: { dateRange: { start: at(50), end: at(55) } } }),
  (memory) =>
    memory.listMessages({ threadId: "t", perPage: 0, include: [{ id: "uu1", threadId: "uu", withNextMessages: 1 }] }),
  (memory) => memory.listMessages({ threadId: "t", resourceId: "eve" }),
  (memory) => memory.listMessages({ threadId: "" }),
  (memory) => memory.saveMessages({ messages: [say("t7", 7, "seven")] }),
  (memory) => memory.updateThread({ id: "t", metadata: { more: 1 } }),
  (memory) => memory.updateThread({ id: "none", title: "x" }),
  (memory) => memory.patchThread({ id: "uu", title: "Use" }),
  (memory) => memory.listThreads({ filter: { resourceId: "ada" }, orderBy: { field: "createdAt" } }),
  (memory) => memory.listThreads({ perPage: 1, page: 1, orderBy: { field: "createdAt", direction: "ASC" } }),
  (memory) => memory.deleteThread({ threadId: "uu" }),
  (memory) => memory.listMessages({ threadId: "uu" }),
  (memory) => memory.listThreads({ filter: { metadata: { more: 1 } } }),
  (memory) => memory.getResourceById({ resourceId: "ada" }),
  (memory) => memory.saveResource({ resource: { id: "ada", createdAt: at(1), updatedAt: at(1) } }),
  (memory) => memory.updateResource({ resourceId: "ada", workingMemory: "likes tea" }),
  (memory) => memory.updateResource({ resourceId: "ada", metadata: { age: 7 } }),
  (memory) => memory.getResourceById({ resourceId: "ada" }),
];

/** Calls that name messages alone: a run finds them in the threads that it has read. */
const byId: typeof calls = [
  (memory) =>
    memory.updateMessages({ messages: [{ id: "t8", content: { format: 2, parts: [], metadata: { seen: true } } }] }),
  (memory) => memory.saveThread({ thread: thread("vvv") }),
  (memory) => memory.updateMessages({ messages: [{ id: "t9", threadId: "vvv" }] }),
  (memory) => memory.deleteMessages(["t10", "t9"]),
  (memory) => memory.listMessagesById({ messageIds: ["t8", "none"] }),
  (memory) => memory.listMessages({ threadId: "t", perPage: false }),
];

/** Times of changes are those of the call. */
const timeless = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (key, one: unknown) => (key === "updatedAt" ? "now" : one)) ?? "null");

const outcomeOf = async (work: Promise<unknown>): Promise<unknown> =>
  await work.then(timeless, (error: Error) => `${error.message}`);

it.each([
  ["in a run", [...calls, ...byId]],
  ["outside a run", calls],
] as const)("%s it answers as Mastra's own storage does", async (where, compared) => {
  const theirs = await memoryOf(new InMemoryStore());
  let answers = 0;
  const compare = async (): Promise<void> => {
    for (const call of compared) {
      const [found, expected] = [await outcomeOf(call(ours)), await outcomeOf(call(theirs))];
      expect(found, call.toString()).toEqual(expected);
      answers++;
    }
  };
  const { tape, start } = await opened({ effects: [], run: async () => "" }, async (_tape, text) => {
    if (text === "compare") await compare();
    return (await ours.listMessages({ threadId: "t", perPage: false })).messages.map(({ id }) => id);
  });
  const ours = await memoryOf(new TapeStorage(() => tape.tape));
  if (where === "in a run") expect(await start("compare")).toMatchObject({ outcome: expect.any(Array) });
  else await tape.time.during(compare());
  expect(answers).toBe(compared.length);
  const left = (await theirs.listMessages({ threadId: "t", perPage: false })).messages.map(({ id }) => id);
  expect(left.length).toBeGreaterThan(100);
  expect((await start("read", { id: "reader" })).outcome).toEqual(left);
});

it.each([
  ["a list of threads", (memory: MemoryStorage) => memory.listThreads({}), "need the app"],
  ["an unknown message", (memory: MemoryStorage) => memory.deleteMessages(["none"]), "message none is in no thread"],
  [
    "a message without a thread",
    (memory: MemoryStorage) => memory.saveMessages({ messages: [{ ...many(0, 1)[0]!, threadId: "" }] }),
    "without a thread",
  ],
  ["to clear everything", (memory: MemoryStorage) => memory.dangerouslyClearAll(), "delete each"],
] as const)("refuses %s", async (_, call, why) => {
  const { start } = await opened(
    { effects: [], run: async () => "" },
    async () => await call(await memoryOf(new TapeStorage())),
  );
  const { status, outcome } = await start("go");
  expect([status, outcome]).toEqual([
    "FAILED",
    expect.objectContaining({ code: "TAPE_BAD_INPUT", message: expect.stringContaining(why) }),
  ]);
});

function treasurerWith(memory: Memory, mode: Mode = "generate") {
  const kit = durableTools("treasury", toolsOf([search, pay]), policies);
  const model = durableModel(scriptedModel(treasurer), { agent: "treasurer", strict: true });
  const agent = durableAgent(
    new Agent({
      id: "treasurer",
      name: "Treasurer",
      instructions: "Pay what is due.",
      model,
      tools: kit.tools,
      memory,
    }),
  );
  const options = { memory: { thread: "chat", resource: "ada" } };
  const turn = async (text: string): Promise<void> => {
    if (mode === "generate") await agent.generate(text, options);
    else await streamed(agent, text, options);
  };
  return { effects: kit.effects, turn };
}

it.each(["generate", "stream"] as const)(
  "crashed anywhere, two turns in a thread lose and repeat no message (%s)",
  {
    timeout: 600_000,
  },
  async (mode) => {
    const storage = new TapeStorage();
    const { effects, turn } = treasurerWith(new Memory({ storage }), mode);
    const chat = workflow("chat", async (_tape: TapeContext, text: string) => {
      await turn(text);
      await turn("thank you");
      const { messages } = await (await memoryOf(storage)).listMessages({ threadId: "chat" });
      return messages.map(({ role, content }) => `${role} ${content.parts.map(({ type }) => type).join(" ")}`);
    });
    const { rounds, reached, statuses } = await crashAtEveryBoundary({
      ...{ workflow: chat, input: "pay invoice 7", ledger: bank },
      runner: createRunner({ workflows: [chat], effects }),
      signals: [{ gate: toolApproval, value: { approved: true }, times: "always" }],
      // A payment that was proven absent is requested again.
      outcome: (list) =>
        (list as string[]).map((message) => message.replace(/( step-start text tool-invocation)+/, "$1")),
      check: () => expect(bank.applied("pay")).toHaveLength(1),
    });
    console.log(`memory, ${mode}: ${rounds} rounds`);
    expect([statuses, reached]).toEqual([{ COMPLETED: rounds }, rounds]);
  },
);

it("a replayed run reads what it read before, whatever others have changed", async () => {
  const seen: unknown[] = [];
  const proceed = gate<boolean>("proceed");
  const { tape, start, view } = await opened({ effects: [], run: async () => "" }, async (tape, text) => {
    const memory = await memoryOf(new TapeStorage());
    if (text === "write") {
      await memory.saveMessages({ messages: many(0, 1) });
      await memory.updateResource({ resourceId: "ada", workingMemory: "likes tea" });
      return "written";
    }
    const { total } = await memory.listMessages({ threadId: "t" });
    seen.push([total, await memory.getResourceById({ resourceId: "ada" })]);
    if (text === "slow") await tape.gate(proceed); // it parks, and is replayed
    return "read";
  });
  expect((await start("slow", { id: "slow" })).status).toBe("WAITING");
  expect((await start("write", { id: "writer" })).outcome).toBe("written");
  await tape.signal("slow", proceed, true);
  expect((await view("slow")).outcome).toBe("read");
  expect((await start("quick", { id: "quick" })).outcome).toBe("read");
  expect(seen).toEqual([
    [0, null],
    [0, null],
    [1, expect.objectContaining({ workingMemory: "likes tea" })],
  ]);
});

it("of two runs that talk in one thread at the same time, the second one ends", async () => {
  const { effects, turn } = treasurerWith(new Memory({ storage: new TapeStorage() }));
  const { tape, start, view } = await opened({ effects, run: async () => "" }, async (_tape, text) => {
    await turn(text);
    return "saved";
  });
  await start("first", { id: "first" });
  await start("second", { id: "second" });
  await tape.signal("first", toolApproval, { approved: false });
  expect((await view("first")).outcome).toBe("saved");
  await tape.signal("second", toolApproval, { approved: false });
  const { status, outcome } = await view("second");
  // Mastra wraps what its processors throw, and keeps the message alone.
  expect([status, (outcome as Error).message]).toEqual(["FAILED", expect.stringContaining("TAPE_VERSION_CONFLICT")]);
});

it("a run does not wait for the stream of a parked run in the same thread", async () => {
  const { effects, turn } = treasurerWith(new Memory({ storage: new TapeStorage() }), "stream");
  const { tape, start, view } = await opened({ effects, run: async () => "" }, async (_tape, text) => {
    await turn(text);
    return "saved";
  });
  await start("first", { id: "first" });
  expect((await start("second", { id: "second" })).status).toBe("WAITING");
  await tape.signal("second", toolApproval, { approved: false });
  expect((await view("second")).outcome).toBe("saved");
});

it("a run that is cancelled at the gate is cancelled, and saves nothing", async () => {
  const storage = new TapeStorage();
  const { effects, turn } = treasurerWith(new Memory({ storage }));
  const { tape, start, view } = await opened({ effects, run: async () => "" }, async (_tape, text) => {
    if (text === "read") return (await (await memoryOf(storage)).listMessages({ threadId: "chat" })).total;
    await turn(text);
    return "saved";
  });
  await start("pay");
  await tape.cancel("run");
  expect((await view()).status).toBe("CANCELLED");
  expect((await start("read", { id: "reader" })).outcome).toBe(0);
});

import {
  type BaseSessionService,
  createEvent,
  createEventActions,
  InMemorySessionService,
  LlmAgent,
  LogLevel,
  ParallelAgent,
  type Session,
  setLogLevel,
} from "@google/adk";
import { TapePlugin, TapeSessionService } from "durable-tape/adk";
import { beforeEach, expect, it } from "vitest";
import { opened } from "../../agents/suite.ts";
import { turn } from "./framework.ts";
import { ScriptedLlm } from "./scripted-llm.ts";

beforeEach(() => setLogLevel(LogLevel.ERROR));

const none = { effects: [], run: async () => "" };
const ada = { appName: "app", userId: "ada" };

/** Sessions that a sequence of calls has at hand, by name. */
type Held = Map<string, Session>;
type Call = (service: BaseSessionService, held: Held) => Promise<unknown>;

const create =
  (sessionId: string, state?: Record<string, unknown>, of = ada): Call =>
  async (service, held) => {
    const session = await service.createSession({ ...of, sessionId, ...(state && { state }) });
    held.set(sessionId, session);
    return session;
  };
const get =
  (sessionId: string, config = {}, of = ada): Call =>
  (service) =>
    service.getSession({ ...of, sessionId, config });
const say =
  (
    sessionId: string,
    text: string,
    timestamp: number,
    stateDelta: Record<string, unknown> = {},
    branch?: string,
  ): Call =>
  async (service, held) => {
    const event = createEvent({
      id: text,
      author: "user",
      timestamp,
      content: { role: "user", parts: [{ text }] },
      actions: createEventActions({ stateDelta }),
      ...(branch && { branch }),
    });
    const session = held.get(sessionId)!;
    await service.appendEvent({ session, event });
    return session;
  };
const list =
  (request: object): Call =>
  (service) =>
    service.listSessions({ appName: "app", ...request });

/** ADK's own service in memory is the reference: the same calls, the same answers. */
const calls: readonly Call[] = [
  get("s1"),
  list({}),
  create("s1", { color: "red", "temp:x": 1 }),
  create("s1/2"),
  create("s3", undefined, { appName: "app", userId: "bob" }),
  say("s1", "hello", 10, { color: "blue", "app:theme": "dark", "user:name": "Ada", "temp:y": 2 }),
  get("s1"),
  get("s1/2"),
  get("s3", {}, { appName: "app", userId: "bob" }),
  get("s1", {}, { appName: "other", userId: "ada" }),
  ...Array.from({ length: 60 }, (_, k) => say("s1", `line ${k}`, 20 + k, { last: k })),
  get("s1", { numRecentEvents: 3 }),
  get("s1", { afterTimestamp: 70 }),
  get("s1", { afterTimestamp: 1_000 }),
  say("s1", "hello", 200, { color: null }),
  say("s3", "hi", 210, { "app:theme": "light" }),
  get("s1"),
  list({ order: "asc" }),
  list({ order: "desc", limit: 2 }),
  list({ order: "asc", limit: 2, page: 2 }),
  list({ userId: "ada", order: "asc" }),
  list({ userId: "eve", limit: 5 }),
  (service) => service.getOrCreateSession({ ...ada, sessionId: "s1" }),
  (service) => service.deleteSession({ ...ada, sessionId: "s1" }),
  (service) => service.deleteSession({ ...ada, sessionId: "never" }),
  get("s1"),
  list({ order: "asc" }),
  create("s1", { fresh: true }),
  get("s1"),
];

/** The times at which sessions were created differ. */
const untimed = (found: unknown): unknown =>
  JSON.parse(
    JSON.stringify(found ?? null, (key, value) => (key === "lastUpdateTime" && value > 1_000 ? "a time" : value)),
  );

it("answers as ADK's own service in memory does, and another run reads the same", async () => {
  const theirs = new InMemorySessionService();
  let answers = 0;
  const { start, tape: virtual } = await opened(none, async (tape, text) => {
    const ours = new TapeSessionService(tape, () => ({ store: virtual.store, tenant: virtual.tape.tenant }));
    if (text === "read") return await ours.getSession({ appName: "app", userId: "bob", sessionId: "s3" });
    const [held, others]: [Held, Held] = [new Map(), new Map()];
    for (const [k, call] of calls.entries()) {
      const [found, expected] = [await call(ours, held), await call(theirs, others)];
      expect(untimed(found), `call ${k}`).toEqual(untimed(expected));
      if (expected !== undefined) answers++;
    }
    return "compared";
  });
  expect((await start("compare")).outcome).toBe("compared");
  expect(answers).toBeGreaterThan(70);
  const read = await start("read", { id: "second" });
  expect(untimed(read.outcome)).toEqual(
    untimed(await theirs.getSession({ appName: "app", userId: "bob", sessionId: "s3" })),
  );
});

it("runs may create sessions of one user at the same time; two that talk in one session cannot mix", async () => {
  const {
    start,
    view,
    tape: virtual,
  } = await opened(none, async (tape, text) => {
    const service = new TapeSessionService(tape, () => ({ store: virtual.store, tenant: virtual.tape.tenant }));
    if (text === "list") return (await service.listSessions({ ...ada })).totalItems;
    const own = await service.createSession({ ...ada, sessionId: text });
    const shared = await service.getOrCreateSession({ ...ada, sessionId: "shared" });
    await tape.sleep(text === "a" ? "1m" : "2m");
    for (const session of [own, shared]) {
      await service.appendEvent({ session, event: createEvent({ author: "user", content: { parts: [{ text }] } }) });
    }
    return "said";
  });
  await start("first", { id: "first" });
  await Promise.all(["a", "b"].map((id) => start(id, { id })));
  expect((await view("a")).outcome).toBe("said");
  expect((await view("b")).outcome).toMatchObject({ code: "TAPE_VERSION_CONFLICT" });
  expect((await start("list", { id: "list" })).outcome).toBe(4);
});

it("says what it needs to list sessions", async () => {
  const { start } = await opened(none, (tape) => new TapeSessionService(tape).listSessions(ada));
  expect((await start("list")).outcome).toMatchObject({ code: "TAPE_BAD_INPUT" });
});

it("stores the events of parallel branches once and in one order, however they interleave", async () => {
  const orders = new Set<string>();
  const experts = ["law", "tax"].map((name) => {
    const script = async () => {
      for (let k = Math.floor(Math.random() * 4); k > 0; k--) await new Promise((resolve) => setImmediate(resolve));
      return { text: `about ${name}` };
    };
    return new LlmAgent({ name, model: new ScriptedLlm(script), instruction: "Advise." });
  });
  const plugin = new TapePlugin({});
  const team = new ParallelAgent({ name: "team", subAgents: experts });
  const { start } = await opened(none, async (tape, text) => {
    const service = new TapeSessionService(tape);
    if (text !== "read") return await turn(tape, team, plugin, text, { session: tape.runId });
    for (let k = 0; k < 20; k++) {
      const session = await service.getSession({ appName: "treasury", userId: "ada", sessionId: `r${k}` });
      orders.add(session!.events.map(({ author }) => author).join(" "));
    }
    return "read";
  });
  for (let k = 0; k < 20; k++) expect((await start("advise", { id: `r${k}` })).status).toBe("COMPLETED");
  await start("read", { id: "reader" });
  expect([...orders]).toEqual(["user law tax"]);
});

import { createRunner, type TapeContext, workflow } from "durable-tape";
import { type CrashRound, crashAtEveryBoundary, VirtualTape } from "durable-tape/testing";
import { toolApproval } from "../../../src/agent/approval.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { current } from "../../../src/sdk/current.ts";
import { noteRounds } from "../rounds.ts";
import type { AgentSetup, DurableAgent, Framework, Mode, Script, ToolSpec } from "./framework.ts";
import { bank, pay, policies, search, treasurer, words } from "./treasury.ts";

// Each folder has a vitest of its own; this file would find another one.
const { beforeEach, describe, expect, it, onTestFinished } = globalThis as unknown as typeof import("vitest");

const interleavings = Number(process.env.TAPE_OUTSIDE_ROUNDS ?? 200);

/** What every framework must show with its own agent. */
export function agentSuite(framework: Framework): void {
  beforeEach(() => bank.clear());
  describe(`${framework.name}: an agent that pays`, () => {
    it.each(["generate", "stream"] as const)(
      "crashed and paused at every boundary (%s)",
      { timeout: 600_000 },
      (mode) => crashed(framework, mode),
    );
    approvals(framework);
    failures(framework);
    it(`two agents at the same time: ${interleavings} interleavings`, { timeout: 600_000 }, () =>
      interleaved(framework),
    );
  });
}

async function crashed(framework: Framework, mode: Mode): Promise<void> {
  let calls = 0;
  const script: Script = (seen) => {
    calls++;
    return treasurer(seen);
  };
  const agent = framework.agent({ mode, script, tools: [search, pay], policies, model: { strict: true } });
  const chat = workflow("chat", (tape, text: string) => agent.run(tape, text));
  const counts: number[] = [];
  const { boundaries, rounds, reached, statuses } = await crashAtEveryBoundary({
    workflow: chat,
    input: "pay invoice 7",
    runner: createRunner({ workflows: [chat], effects: agent.effects }),
    ledger: bank,
    signals: [{ gate: toolApproval, value: { approved: true }, times: "always" }],
    fresh: () => {
      calls = 0;
    },
    check: async (round) => {
      counts.push(calls);
      const { store, tenant, run, effects } = round;
      expect(bank.seen.filter(({ name }) => name === "pay")).toHaveLength(1);
      // A payment that was proven absent is requested once more; a zombie's decision is refused.
      const absent = effects.filter(({ status }) => status === "FAILED").length;
      const kinds = (await store.read.journal(tenant, { run: run.id })).map(({ kind }) => kind);
      expect(kinds.filter((kind) => kind === "decision.made")).toHaveLength(3 + absent);
      expect(absent).toBeLessThanOrEqual(1);
      expect(calls).toBeLessThanOrEqual(4); // the call in flight at the crash is made again
      const expected = absent === 1 ? [words[0], words[1], words[1], words[2]] : words;
      expect(await shownText(round)).toBe(mode === "stream" ? expected.join("") : ""); // a zombie's chunks are refused
    },
  });
  const byCount = Object.entries(Object.groupBy(counts, String)).map(([count, all]) => `${count} × ${all!.length}`);
  console.log(`${mode}: ${boundaries.length} boundaries, ${rounds} rounds, model calls ${byCount.join(", ")}`);
  expect(statuses).toEqual({ COMPLETED: rounds });
  expect(reached).toBe(rounds);
  expect(rounds).toBeGreaterThan(80);
  expect([Math.min(...counts), Math.max(...counts)]).toEqual([3, 4]);
  const paidOnce = counts.length - 1; // without the round that has no crash
  noteRounds({ framework: framework.name, agent: mode, boundaries: boundaries.length, rounds, paidOnce });
}

/** What a reader keeps of the run's stream. */
async function shownText({ store, tenant, run }: CrashRound): Promise<string> {
  const [page] = await store.read.chunks(tenant, [{ run: run.id, stream: "parts", from: 0 }]);
  return page!.chunks.map((chunk) => ("value" in chunk ? (chunk.value as { text: string }).text : "")).join("");
}

/** A run in virtual time, until it has settled or waits for a client. */
export async function opened(
  agent: DurableAgent,
  run: (tape: TapeContext, text: string) => Promise<unknown> = (tape, text) => agent.run(tape, text),
  others: Parameters<typeof createRunner>[0]["workflows"] = [],
) {
  const chat = workflow("chat", run);
  const runner = createRunner({ workflows: [chat, ...others], effects: agent.effects });
  const tape = await VirtualTape.open({ runner, log: "silent" });
  onTestFinished(() => tape.close());
  const view = async (id = "run") => (await tape.settle()).find((one) => one.id === id)!;
  const records = (id = "run") => tape.time.during(tape.store.read.journal(tape.tape.tenant, { run: id }));
  const gates = (id = "run") => tape.time.during(tape.tape.gates.list({ run: id }));
  const start = async (text: string, options: { id?: string; budget?: Record<string, number> } = {}) => {
    await tape.start(chat, text, { id: "run", ...options });
    return await view(options.id);
  };
  return { tape, start, view, records, gates };
}

const callOf = ({ payload }: { readonly payload?: unknown }): string => (payload as { call: string }).call;

const simple: Omit<AgentSetup, "script"> = { mode: "generate", tools: [search, pay], policies };

function approvals(framework: Framework): void {
  /** Requests the same payment twice in one turn. */
  const twice: Script = ({ results }) => {
    const calls = ["p-1", "p-2"].map((id) => ({ id, tool: "pay", input: { invoice: "7" } }));
    return results.length === 0 ? { calls } : { text: results.map(({ output }) => output).join(" | ") };
  };

  it("each of two equal calls needs its own approval, and a stale one is refused", async () => {
    const both = { ...policies, pay: { semantics: "idempotent", approve: "framework" } };
    const agent = framework.agent({ ...simple, script: twice, policies: both });
    const { tape, start, view, gates } = await opened(agent);
    expect((await start("pay")).status).toBe("WAITING");
    const open = await gates();
    expect(open.map(callOf).sort()).toEqual(framework.sequential ? ["p-1"] : ["p-1", "p-2"]);
    const approve = (binds: string) =>
      tape.time.during(
        tape.tape.signal("run", toolApproval, { approved: true }, { binds, mustMatch: true }).then(
          () => "accepted",
          (error: { code: string }) => error.code,
        ),
      );
    const first = open.find((gate) => callOf(gate) === "p-1")!;
    expect(await approve("0".repeat(64))).toBe("TAPE_GATE_STALE");
    expect(await approve(first.binds!)).toBe("accepted");
    expect((await view()).status).toBe("WAITING");
    expect(bank.applied("pay")).toHaveLength(1); // the other one still waits
    expect(await approve(first.binds!)).toBe("TAPE_GATE_STALE");
    const [second] = await gates();
    expect(callOf(second!)).toBe("p-2");
    expect(await approve(second!.binds!)).toBe("accepted");
    expect((await view()).status).toBe("COMPLETED");
    expect(bank.applied("pay")).toHaveLength(2);
  });

  it("the model reads why a call was denied, and nothing is paid", async () => {
    const { tape, start, view } = await opened(framework.agent({ ...simple, script: treasurer }));
    await start("pay invoice 7");
    await tape.signal("run", toolApproval, { approved: false, reason: "too late" });
    const { status, outcome } = await view();
    expect([status, outcome]).toEqual(["COMPLETED", expect.stringContaining("the call was denied: too late")]);
    expect(bank.seen).toEqual([]);
  });

  it("a run that is cancelled at the gate ends, and nothing is paid", async () => {
    const { tape, start, view } = await opened(framework.agent({ ...simple, script: treasurer }));
    await start("pay invoice 7");
    await tape.cancel("run");
    expect((await view()).status).toBe("CANCELLED");
    expect(bank.seen).toEqual([]);
  });
}

function failures(framework: Framework): void {
  it.each(["generate", "stream"] as const)(
    "Tape alone retries a model call, and waits as long as the provider requests (%s)",
    async (mode) => {
      let calls = 0;
      const script: Script = () => {
        if (++calls < 3) throw framework.providerError(429, { "retry-after": "600" });
        return { text: "done" };
      };
      const { tape, start, records } = await opened(framework.agent({ ...simple, mode, script, retries: true }));
      const from = tape.time.now;
      const { status, outcome } = await start("go");
      expect([status, outcome, calls]).toEqual(["COMPLETED", "done", 3]);
      expect(tape.time.now - from).toBeGreaterThanOrEqual(1_200_000);
      expect((await records()).filter(({ kind }) => kind === "decision.made")).toHaveLength(1);
    },
  );

  it.each(["generate", "stream"] as const)(
    "a final failure is the framework's error, also when it is replayed (%s)",
    async (mode) => {
      let calls = 0;
      const script: Script = () => {
        calls++;
        throw framework.providerError(400);
      };
      const agent = framework.agent({ ...simple, mode, script, retries: true });
      const seen: boolean[] = [];
      const { start } = await opened(agent, async (tape, text) => {
        const error = await agent.run(tape, text).catch((thrown: unknown) => thrown);
        seen.push(framework.isProviderError(error, 400));
        await tape.sleep("1h"); // it parks, and is replayed
        return "ended";
      });
      expect((await start("go")).outcome).toBe("ended");
      expect([calls, seen]).toEqual([1, [true, true]]);
    },
  );

  it("an exhausted budget ends the agent before the call", async () => {
    let calls = 0;
    const script: Script = (seen) => {
      calls++;
      return treasurer(seen);
    };
    const { start } = await opened(framework.agent({ ...simple, script, model: { maxOutputTokens: 100 } }));
    const { status, outcome } = await start("pay invoice 7", { budget: { calls: 1 } });
    expect([status, (outcome as { code?: string }).code, calls]).toEqual(["FAILED", "TAPE_BUDGET_EXCEEDED", 1]);
  });

  it.each([
    ["vanished", 3, "is observed, and done again where it did not happen"],
    ["lost", 3, "is observed, and not done again where it did"],
    ["refused", 4, "for good is words for the model, which requests it again"],
  ] as const)("a tool whose request is %s (%i decisions) %s", async (fault, decisions, _) => {
    bank.failNext("pay", fault);
    const { needsApproval: __, ...free } = pay;
    const { start, records } = await opened(framework.agent({ ...simple, script: treasurer, tools: [search, free] }));
    const { status, outcome } = await start("pay invoice 7");
    expect([status, outcome]).toEqual(["COMPLETED", words[2]]);
    expect(bank.applied("pay")).toHaveLength(1);
    expect((await records()).filter(({ kind }) => kind === "decision.made")).toHaveLength(decisions);
  });
}

/** Two experts with one model and one name: only their lanes tell their decisions apart. */
async function interleaved(framework: Framework): Promise<void> {
  const random = seededRandom(process.env.TAPE_TEST_SEED ?? "two agents");
  const io = async (): Promise<void> => {
    for (let k = Math.floor(random.float() * 6); k > 0; k--) await new Promise((resolve) => setImmediate(resolve));
  };
  const read: ToolSpec = {
    name: "read",
    fields: ["topic"],
    execute: async ({ topic }) => {
      await io(); // of its own: replay takes another time
      return `a page on ${topic}`;
    },
  };
  const nap: ToolSpec = {
    name: "nap",
    fields: ["seconds"],
    execute: async ({ seconds }) => {
      await current().sleep(`${Number(seconds)}s`); // parks, so that a replay follows
      await io();
      return "rested";
    },
  };
  const script: Script = async ({ prompt, results }) => {
    await io();
    const topic = /law|tax/.exec(prompt)![0];
    if (results.length === 0) return { calls: [{ id: `read-${topic}`, tool: "read", input: { topic } }] };
    const seconds = String(1 + Math.floor(random.float() * 20));
    if (results.length === 1) return { calls: [{ id: `nap-${topic}`, tool: "nap", input: { seconds } }] };
    return { text: `about ${topic}` };
  };
  const team = framework.team({ script, topics: ["law", "tax"], tools: [read, nap] });
  const flow = workflow("team", (tape) => team.run(tape, "advise"));
  const runner = createRunner({ workflows: [flow], effects: team.effects });
  await using tape = await VirtualTape.open({ runner, log: "silent" });
  for (let k = 0; k < interleavings; k++) await tape.start(flow, undefined, { id: `run-${k}` });
  await tape.settle();
  const runs = await tape.store.read.runs(tape.tape.tenant, { limit: interleavings });
  const ended = Object.groupBy(runs, ({ status, outcome }) => `${status} ${String(outcome)}`);
  const counts = Object.fromEntries(Object.entries(ended).map(([how, all]) => [how, all!.length]));
  expect(counts).toEqual({ "COMPLETED law: about law, tax: about tax": interleavings });
  const journal = await tape.store.read.journal(tape.tape.tenant, { run: "run-0" });
  expect(journal.filter(({ kind }) => kind === "term.started").length).toBeGreaterThan(0); // it was replayed
}

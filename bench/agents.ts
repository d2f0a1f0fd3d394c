import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { generateText, type LanguageModel, type ModelMessage } from "ai";
import { durableModel } from "../src/ai/model.ts";
import { encode, sizeOf } from "../src/base/codec.ts";
import { createRunner, current, gate, Tape, workflow } from "../src/exports/index.ts";
import { ScriptedLanguageModel } from "../test/ai/scripted-model.ts";
import { startPostgres } from "../test/postgres/server.ts";
import type { BenchOptions } from "./run.ts";
import { median, say } from "./work.ts";

const scripted = (): ScriptedLanguageModel =>
  new ScriptedLanguageModel("v4", (turn) => ({ text: `${turn} ${"a".repeat(1_200)}` }));

/** How a call of the model is recorded. */
const ways = ["deltas", "whole"] as const;
type Way = (typeof ways)[number];

type Sizes = Readonly<Record<"turns" | "rounds", number>>;
type WayFigures = Readonly<Record<"journalBytes" | "replayMs" | "replayCpuMs", number>>;
/** Of one store. */
export type AgentFigures = Sizes &
  Readonly<Record<Way, WayFigures>> &
  Readonly<Record<"loopMs" | "loopCpuMs" | "replayRatio" | "ownRatio", number>>;

/** What an author without the adapter writes, and what the adapter is measured against: each decision has all it was sent. */
function wholeRequests(model: ScriptedLanguageModel): LanguageModel {
  let calls = 0;
  return Object.assign(Object.create(model) as ScriptedLanguageModel, {
    doGenerate: (options: { readonly prompt: readonly never[] }) =>
      current().decide(`whole ${++calls}`, (decision) => {
        decision.record({ model: "local/scripted", request: { messages: options.prompt } });
        return model.doGenerate(options);
      }),
  }) as unknown as LanguageModel;
}

const go = gate("go");

interface Talk {
  readonly way: Way;
  readonly turns: number;
}

/** Reports when a drive has passed the nth gate. */
class GateWatch {
  readonly #resolvers = new Map<string, () => void>();

  until(run: string, gates: number): Promise<void> {
    return new Promise((resolve) => this.#resolvers.set(`${run} ${gates}`, resolve));
  }

  pass(run: string, gates: number): void {
    this.#resolvers.get(`${run} ${gates}`)?.();
  }
}

async function converse(model: LanguageModel, turns: number): Promise<void> {
  const messages: ModelMessage[] = [];
  for (let k = 0; k < turns; k++) {
    messages.push({ role: "user", content: `${k} ${"q".repeat(800)}` });
    messages.push(...(await generateText({ model, messages })).response.messages);
  }
}

/** Many turns of one conversation; then it parks at a gate, again and again: each passage needs a replay of all turns. */
const talkTo = (passed: GateWatch) =>
  workflow("talk", async (tape, { way, turns }: Talk) => {
    await converse(way === "deltas" ? (durableModel(scripted()) as LanguageModel) : wholeRequests(scripted()), turns);
    for (let k = 0; ; k++) {
      passed.pass(tape.runId, k);
      await tape.gate(go);
    }
  });

/**
 * A conversation of 200 turns of 2 KB with a stock agent, recorded as the adapter does it (`deltas`: new messages and a
 * hash) and with the whole request in each decision (`whole`).
 *
 *   journalBytes    of all records of the run
 *   replayMs        from a signal to a process that has just opened the store, to the first line after the gate: it
 *                   claims the run, reads its journal, and replays all turns. The median of the rounds
 *   replayCpuMs     the processor time of that
 *   loopMs          the same conversation without Tape: the loop of the AI SDK, which every replay runs; loopCpuMs
 *   replayRatio     deltas ÷ whole
 *   ownRatio        the same of processor time without the loop: what Tape adds to it
 */
export async function benchAgents({ flags }: Pick<BenchOptions, "flags">): Promise<Record<string, AgentFigures>> {
  const { values } = parseArgs({
    args: [...flags],
    options: {
      turns: { type: "string", default: "200" },
      rounds: { type: "string", default: "9" },
      only: { type: "string" },
      json: { type: "boolean" },
      seconds: { type: "string" },
    },
  });
  const sizes = { turns: Number(values.turns), rounds: Number(values.rounds) };
  const figures: Record<string, AgentFigures> = {};
  if (values.only !== "postgres") {
    const folder = await mkdtemp(join(tmpdir(), "tape-agents-"));
    try {
      figures.sqlite = await measure("sqlite", `sqlite:${join(folder, "agents.db")}`, sizes);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  if (values.only !== "sqlite") {
    const server = await startPostgres({ major: 18, settings: {} });
    try {
      figures.postgres = await measure("postgres", server.url, sizes);
    } finally {
      await server.stop();
    }
  }
  return figures;
}

async function measure(name: string, store: string, { turns, rounds }: Sizes): Promise<AgentFigures> {
  const open = async () => {
    const passed = new GateWatch();
    const talk = talkTo(passed);
    return {
      passed,
      talk,
      app: await Tape.open({ store, runner: createRunner({ workflows: [talk] }), log: "silent" }),
    };
  };
  const bytes: Record<Way, number> = { deltas: 0, whole: 0 };
  const times: Record<Way | "loop", Time[]> = { deltas: [], whole: [], loop: [] };
  for (const way of ways) {
    const { app, talk, passed } = await open();
    const reached = passed.until(way, 0);
    await app.start(talk, { way, turns }, { id: way });
    await reached;
    const records = await app.store.read.journal(app.tenant, { run: way });
    bytes[way] = records.reduce((sum, { data }) => sum + sizeOf(encode(data)), 0);
    await app.close();
  }
  for (let round = 1; round <= rounds; round++) {
    times.loop.push(await timed(() => converse(scripted() as unknown as LanguageModel, turns)));
    for (const way of ways) {
      const { app, passed } = await open();
      const reached = passed.until(way, round);
      times[way].push(await timed(() => app.signal(way, go, round).then(() => reached)));
      await app.close();
    }
  }
  const of = (what: Way | "loop", unit: keyof Time): number => median(times[what].map((one) => one[unit]));
  const own = (way: Way): number => of(way, "cpuMs") - of("loop", "cpuMs");
  const figuresOf = (way: Way): WayFigures => ({
    journalBytes: bytes[way],
    replayMs: Math.round(of(way, "ms")),
    replayCpuMs: Math.round(of(way, "cpuMs")),
  });
  const figures = {
    ...{ turns, rounds, deltas: figuresOf("deltas"), whole: figuresOf("whole") },
    ...{ loopMs: Math.round(of("loop", "ms")), loopCpuMs: Math.round(of("loop", "cpuMs")) },
    ...{ replayRatio: three(of("deltas", "ms") / of("whole", "ms")), ownRatio: three(own("deltas") / own("whole")) },
  };
  say(`${name}: ${JSON.stringify(figures)}`);
  return figures;
}

type Time = Readonly<Record<"ms" | "cpuMs", number>>;

async function timed(body: () => Promise<unknown>): Promise<Time> {
  const [from, cpu] = [performance.now(), process.cpuUsage()];
  await body();
  const { user, system } = process.cpuUsage(cpu);
  return { ms: performance.now() - from, cpuMs: (user + system) / 1_000 };
}

const three = (value: number): number => Math.round(value * 1_000) / 1_000;

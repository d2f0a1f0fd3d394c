import { mkdtemp, rm } from "node:fs/promises";
import { Agent, get, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createRunner, type RunHandle, stream, Tape, workflow } from "../src/exports/index.ts";
import { startPostgres } from "../test/postgres/server.ts";
import type { BenchOptions } from "./run.ts";
import { startServer } from "./served.ts";
import { killStreams } from "./streams/kill.ts";
import { percentile, say } from "./work.ts";

const tokens = stream<string>("tokens");
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));

/** Writes the time, `rate` times a second. */
const talk = workflow("talk", (tape, { rate, seconds }: { rate: number; seconds: number }) =>
  tape.step("talk", async (d) => {
    const out = d.stream(tokens);
    const from = performance.now();
    for (let k = 0; k < rate * seconds; k++) {
      await pause(from + (k * 1_000) / rate - performance.now());
      await out.write(`${performance.now()} word `);
    }
  }),
);

/** Writes as fast as it can. */
const burst = workflow("burst", (tape, count: number) =>
  tape.step("burst", async (d) => {
    const out = d.stream(tokens);
    for (let k = 0; k < count; k++) await out.write(`a word, number ${k} `);
  }),
);

const steps = workflow("steps", async (tape, until: number) => {
  let count = 0;
  for (; performance.now() < until; count++) await tape.step("s", () => 1);
  return count;
});

/** The offsets and delays of one reader of events over HTTP. */
function readEvents(url: string, agent: Agent, delays: number[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent, headers: { accept: "text/event-stream" } }, (response: IncomingMessage) => {
      let rest = "";
      let count = 0;
      response.setEncoding("utf8");
      response.on("data", (text: string) => {
        const now = performance.now();
        const blocks = `${rest}${text}`.split("\n\n");
        rest = blocks.pop() ?? "";
        for (const block of blocks) {
          const sent = /"value":"([\d.]+) /.exec(block)?.[1];
          if (sent === undefined) continue;
          count++;
          delays.push(now - Number(sent));
        }
      });
      response.on("end", () => resolve(count));
      response.on("error", reject);
    });
    request.on("error", reject);
  });
}

interface Place {
  readonly url: string;
  /** The worker reaches the store through the server, which alone has the file. */
  readonly remote: boolean;
}

/** Runs that stream beside others that execute steps, and a reader for each; the steps also without the streams. */
async function live({ url, remote }: Place, runs: number, rate: number, seconds: number): Promise<object> {
  const server = await startServer(url);
  const runner = createRunner({ workflows: [talk, steps] });
  const app = remote
    ? await Tape.connect(server.url, { runner, log: "silent", concurrency: 500 })
    : await Tape.open({ store: url, runner, log: "silent", concurrency: 500 });
  const agent = new Agent({ keepAlive: false, maxSockets: runs + 10 });
  const perSecond = async (): Promise<number> => {
    const until = performance.now() + seconds * 1_000;
    const counts = await Promise.all(Array.from({ length: 4 }, async () => (await app.start(steps, until)).result()));
    return counts.reduce((sum, count) => sum + count, 0) / seconds;
  };
  const delays: number[] = [];
  const streamed = async (input: { rate: number; seconds: number }): Promise<number> => {
    const started: RunHandle<void>[] = await Promise.all(Array.from({ length: runs }, () => app.start(talk, input)));
    const counts = await Promise.all(
      started.map(({ id }) => readEvents(`${server.url}/v1/runs/${id}/streams/tokens`, agent, delays)),
    );
    await Promise.all(started.map((run) => run.result()));
    return counts.reduce((sum, count) => sum + count, 0);
  };
  try {
    await perSecond(); // warm-up
    await streamed({ rate, seconds: 1 });
    delays.length = 0;
    const received = await streamed({ rate, seconds });
    const quiet = {
      p50: ms(percentile(delays, 0.5)),
      p99: ms(percentile(delays, 0.99)),
      worst: ms(Math.max(...delays)),
    };
    const alone = [await perSecond()];
    const [beside] = await Promise.all([perSecond(), streamed({ rate, seconds })]);
    alone.push(await perSecond());
    const mean = (alone[0]! + alone[1]!) / 2;
    return {
      runs,
      rate,
      received,
      lost: runs * rate * seconds - received,
      ...quiet,
      steps: Math.round(mean),
      besideStreams: ms(beside! / mean),
    };
  } finally {
    agent.destroy();
    await app.close();
    await server.stop();
  }
}

/** Chunks a second of one run with one reader, and what a reader reads that resumes near the end. */
async function throughput(url: string, count: number): Promise<object> {
  await using app = await Tape.open({ store: url, runner: createRunner({ workflows: [burst] }), log: "silent" });
  await (await app.start(burst, 1_000)).result(); // warm-up
  const from = performance.now();
  const run = await app.start(burst, count);
  let seen = 0;
  for await (const _ of run.stream(tokens)) seen++;
  const perSecond = seen / ((performance.now() - from) / 1_000);
  const [page] = await app.store.read.chunks(app.tenant, [{ run: run.id, stream: "tokens", from: seen - 100 }]);
  return { chunks: seen, perSecond: Math.round(perSecond), resumedNearTheEnd: page?.chunks.length };
}

/**
 * Streams of runs.
 *
 *   p50, p99        milliseconds from `write` in the worker to a reader of events over HTTP, of a server process
 *   besideStreams   steps a second of four other runs in the same worker while all that streams, ÷ without
 *   perSecond       chunks of one run as fast as it writes, with one reader
 *   kills           kill -9 of the writing process; duplicates and gaps of readers must be 0
 */
export async function benchStreams({ flags }: BenchOptions): Promise<object> {
  const { values } = parseArgs({
    args: [...flags],
    options: {
      runs: { type: "string", default: "100" },
      rate: { type: "string", default: "50" },
      chunks: { type: "string", default: "20000" },
      kills: { type: "string", default: "100" },
      seconds: { type: "string", default: "5" },
      only: { type: "string" },
      json: { type: "boolean" },
    },
  });
  const [runs, rate, seconds] = [Number(values.runs), Number(values.rate), Number(values.seconds)];
  const figures: Record<string, object> = {};
  const measure = async (name: string, place: Place): Promise<void> => {
    const one = {
      live: await live(place, runs, rate, seconds),
      throughput: await throughput(place.url, Number(values.chunks)),
    };
    say(`${name}: ${JSON.stringify(one)}`);
    figures[name] = one;
  };
  const folder = await mkdtemp(join(tmpdir(), "tape-streams-"));
  try {
    if (values.only !== "postgres")
      await measure("sqlite", { url: `sqlite:${join(folder, "streams.db")}`, remote: true });
    if (values.only !== "sqlite") {
      const server = await startPostgres({ major: 18, settings: {} });
      try {
        await measure("postgres", { url: server.url, remote: false });
      } finally {
        await server.stop();
      }
    }
    const kills = Number(values.kills);
    const url = `sqlite:${join(folder, "kills.db")}`;
    const size = { bodies: Math.max(4, kills * 6), chunks: 20, gapMs: 10 };
    if (kills > 0) figures.kills = await killStreams({ url, ttlMs: 1_000, kills, ...size, random: Math.random });
    return figures;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const ms = (value: number): number => Math.round(value * 100) / 100;

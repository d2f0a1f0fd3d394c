import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createRunner, stream, Tape, workflow } from "../src/exports/index.ts";
import { startPostgres } from "../test/postgres/server.ts";
import type { BenchOptions } from "./run.ts";
import { dbosStreams } from "./streams/dbos.ts";
import { killStreams } from "./streams/kill.ts";
import { live, type Place } from "./streams/live.ts";
import { say } from "./work.ts";

const tokens = stream<string>("tokens");

/** Of writers that are killed: their TTL of a second has to be longer than the store's transactions. */
export const killUrl = (postgres: string): string => `${postgres}?transaction_bound_ms=500`;

/** Writes as fast as it can. */
const burst = workflow("burst", (tape, count: number) =>
  tape.step("burst", async (d) => {
    const out = d.stream(tokens);
    for (let k = 0; k < count; k++) await out.write(`a word, number ${k} `);
  }),
);

interface Throughput {
  readonly chunks: number;
  readonly perSecond: number;
  readonly resumedNearTheEnd: number | undefined;
}

/** Chunks a second of one run with one reader, and what a reader reads that resumes near the end. */
async function throughput(url: string, count: number): Promise<Throughput> {
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
 *   p50, p99        milliseconds from `write` in the worker to a reader in another process, through a server in a third
 *   besideStreams   steps a second of four other runs in the same worker while all that streams, ÷ beside the same
 *                   bodies that write to no stream
 *   besideBodies    the same without streams, ÷ without these bodies
 *   perSecond       chunks of one run as fast as it writes, with one reader
 *   dbos            the same of DBOS with `writeStream` and `readStream`, on the same PostgreSQL server; `ratio` is
 *                   perSecond on PostgreSQL ÷ the fastest of DBOS's (`--no-dbos` leaves it out)
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
      "no-dbos": { type: "boolean", default: false },
      seconds: { type: "string", default: "5" },
      only: { type: "string" },
      json: { type: "boolean" },
    },
  });
  const [runs, rate, seconds] = [Number(values.runs), Number(values.rate), Number(values.seconds)];
  const figures: Record<string, object> = {};
  const measure = async (name: string, place: Place, killed: string): Promise<Throughput> => {
    const kills = Number(values.kills);
    const size = { bodies: Math.max(4, kills * 6), chunks: 20, gapMs: 10 };
    const one = {
      live: await live(place, { runs, rate, seconds }),
      throughput: await throughput(place.url, Number(values.chunks)),
      ...(kills > 0 && {
        kills: await killStreams({ url: killed, ttlMs: 1_000, kills, ...size, random: Math.random }),
      }),
    };
    say(`${name}: ${JSON.stringify(one)}`);
    figures[name] = one;
    return one.throughput;
  };
  const folder = await mkdtemp(join(tmpdir(), "tape-streams-"));
  const file = (name: string): string => `sqlite:${join(folder, name)}`;
  try {
    if (values.only !== "postgres") await measure("sqlite", { url: file("live.db"), remote: true }, file("kills.db"));
    if (values.only !== "sqlite") {
      const server = await startPostgres({ major: 18, settings: {} });
      try {
        const { perSecond } = await measure("postgres", { url: server.url, remote: false }, killUrl(server.url));
        if (!values["no-dbos"]) {
          const dbos = await dbosStreams(server.url, Math.ceil(Number(values.chunks) / 10));
          figures.dbos = { ...dbos, ratio: Math.round((perSecond / dbos.perSecond) * 10) / 10 };
          say(`dbos: ${JSON.stringify(figures.dbos)}`);
        }
      } finally {
        await server.stop();
      }
    }
    return figures;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner, Tape } from "../src/exports/index.ts";
import { startPostgres } from "../test/postgres/server.ts";
import type { BenchOptions } from "./run.ts";
import { startServer } from "./served.ts";
import { stepsFor, ten } from "./ten.ts";
import { median, say } from "./work.ts";

/**
 * A driver behind a server against an embedded one, on the same store and in the same run: the ten-step workflow of
 * bench/runs.ts. The server is a process of its own, as it would be; rounds alternate.
 */
export async function benchRemote(options: BenchOptions): Promise<object> {
  const figures: Record<string, unknown> = {};
  if (options.only !== "postgres") {
    figures.sqlite = await onSqlite(options);
    figures.ratio128Sqlite = (figures.sqlite as Figures).ratio128;
    figures.ratio1Sqlite = (figures.sqlite as Figures).ratio1;
  }
  if (options.only !== "sqlite") {
    figures.postgres = await onPostgres(options);
    figures.ratio128 = (figures.postgres as Figures).ratio128;
    figures.ratio1 = (figures.postgres as Figures).ratio1;
  }
  return figures;
}

type Figures = Record<string, number>;

const runner = () => createRunner({ workflows: [ten] });

async function onSqlite(options: BenchOptions): Promise<Figures> {
  const folder = await mkdtemp(join(tmpdir(), "tape-bench-"));
  try {
    // A file of its own for each: two processes on one would wait for each other's locks.
    const [here, there] = ["embedded.db", "served.db"].map((file) => `sqlite:${join(folder, file)}`);
    return await measure("sqlite", here!, there!, options);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function onPostgres(options: BenchOptions): Promise<Figures> {
  const server = await startPostgres({ major: 18, settings: {} });
  try {
    return await measure("postgres", server.url, `${server.url}?schema=served`, options);
  } finally {
    await server.stop();
  }
}

const rounds = 5;

async function measure(name: string, here: string, there: string, options: BenchOptions): Promise<Figures> {
  const sliceMs = (options.seconds * 1000) / rounds;
  const figures: Figures = {};
  const server = await startServer(there);
  const embedded = await Tape.open({ store: here, runner: runner(), concurrency: 5_000 });
  const remote = await Tape.connect(server.url, { runner: runner(), concurrency: 5_000 });
  try {
    for (const w of [1, 16, 128]) {
      const near: number[] = [];
      const far: number[] = [];
      for (let round = 0; round <= rounds; round++) {
        const nearRate = await stepsFor(embedded, w, sliceMs);
        const farRate = await stepsFor(remote, w, sliceMs);
        if (round === 0) continue; // warm-up
        near.push(nearRate);
        far.push(farRate);
      }
      figures[`embedded${w}`] = Math.round(median(near));
      figures[`remote${w}`] = Math.round(median(far));
      figures[`ratio${w}`] = Math.round(median(far.map((rate, k) => rate / near[k]!)) * 1000) / 1000;
      say(
        `${name} ${w} at a time: remote ${figures[`remote${w}`]} steps/s, embedded ${figures[`embedded${w}`]}, ratio ${figures[`ratio${w}`]}`,
      );
    }
  } finally {
    await Promise.all([embedded.close(), remote.close()]);
    await server.stop();
  }
  return figures;
}

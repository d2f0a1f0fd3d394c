import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "../src/host/open-store.ts";
import { Tape } from "../src/host/tape.ts";
import { createRunner, workflow } from "../src/sdk/workflow.ts";
import { startPostgres } from "../test/postgres/server.ts";
import { type RawWriter, rawPostgres, rawSqlite } from "./raw.ts";
import type { BenchOptions } from "./run.ts";
import { payload, stepsFor, ten } from "./ten.ts";
import { median, percentile, say } from "./work.ts";

/**
 * Whole runs through the engine, as a program has them: started, driven, awaited. Each rate stands beside the raw limit
 * of the same store in the same run: rows straight into the table, unfenced, 128 to a batch or one to a commit.
 */
export async function benchRuns(options: BenchOptions): Promise<object> {
  const figures: Record<string, object> = {};
  if (options.only !== "postgres") figures.sqlite = await onSqlite(options);
  if (options.only !== "sqlite") figures.postgres = await onPostgres(options);
  return figures;
}

const one = workflow("one", async (tape, _input: number) => tape.step("only", () => ({ ok: true, value: payload })));
const nap = workflow("nap", async (tape, ms: number) => {
  await tape.sleep(ms);
  return tape.now();
});
const long = workflow("long", async (tape, steps: number) => {
  for (let k = 0; k < steps; k++) await tape.step("s", () => ({ ok: true, value: payload, at: k }));
  await tape.sleep("1h");
});
const runner = () => createRunner({ workflows: [ten, one, nap, long] });

async function onSqlite(options: BenchOptions): Promise<object> {
  const folder = await mkdtemp(join(tmpdir(), "tape-bench-"));
  try {
    const rawFile = join(folder, "raw.db");
    await (await openStore(`sqlite:${rawFile}`)).close();
    return await measure("sqlite", `sqlite:${join(folder, "ours.db")}`, rawSqlite(rawFile), options);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function onPostgres(options: BenchOptions): Promise<object> {
  const server = await startPostgres({ major: 18, settings: {} });
  try {
    await (await openStore(`${server.url}?schema=raw`)).close();
    return await measure("postgres", server.url, await rawPostgres(server.url, "raw"), options);
  } finally {
    await server.stop();
  }
}

const rounds = 5;

async function measure(name: string, url: string, raw: RawWriter, options: BenchOptions): Promise<object> {
  const app = await Tape.open({ store: url, runner: runner(), concurrency: 5_000 });
  const sliceMs = (options.seconds * 1000) / rounds;
  const figures: Record<string, number> = {};
  try {
    for (const w of [1, 16, 128]) {
      const ours: number[] = [];
      const theirs: number[] = [];
      for (let round = 0; round <= rounds; round++) {
        const rawRate = await raw.run(w, sliceMs);
        const rate = await stepsFor(app, w, sliceMs);
        if (round === 0) continue; // warm-up
        theirs.push(rawRate);
        ours.push(rate);
      }
      figures[`steps${w}`] = Math.round(median(ours));
      figures[`raw${w}`] = Math.round(median(theirs));
      figures[`stepsRatio${w}`] = round3(median(ours.map((rate, k) => rate / theirs[k]!)));
      say(
        `${name} ${w} at a time: ${figures[`steps${w}`]} steps/s, raw ${figures[`raw${w}`]} rows/s, ratio ${figures[`stepsRatio${w}`]}`,
      );
    }
    figures.oneStepRuns128 = Math.round(await oneStepRuns(app, sliceMs * rounds));
    say(`${name} one-step runs: ${figures.oneStepRuns128}/s`);
    Object.assign(figures, await timersAtOnce(app));
    say(`${name} 1000 timers due at once: lag p50 ${figures.timersP50Ms} ms, p99 ${figures.timersP99Ms} ms`);
  } finally {
    await app.close();
    await raw.close();
  }
  Object.assign(figures, await replay(url));
  say(`${name} replay of ${figures.replayRecords} records: ratio ${figures.replayRatio}`);
  return figures;
}

async function oneStepRuns(app: Tape, ms: number): Promise<number> {
  const started = performance.now();
  let runs = 0;
  await Promise.all(
    Array.from({ length: 128 }, async (_, k) => {
      while (performance.now() < started + ms) {
        await (await app.start(one, k)).result();
        runs++;
      }
    }),
  );
  return (runs * 1000) / (performance.now() - started);
}

/** A thousand runs that sleep until the same moment: how late each resumes. */
async function timersAtOnce(app: Tape): Promise<Record<string, number>> {
  const due = Date.now() + 4_000;
  const runs = await Promise.all(Array.from({ length: 1_000 }, () => app.start(nap, Math.max(1, due - Date.now()))));
  const woken = await Promise.all(runs.map((run) => run.result()));
  const lags = woken.map((at) => at - due);
  return { timersP50Ms: percentile(lags, 0.5), timersP99Ms: percentile(lags, 0.99) };
}

/** The first execution of a long journal against its replay by another process. */
async function replay(url: string): Promise<Record<string, number>> {
  const steps = 10_000;
  const first = await Tape.open({ store: url, runner: runner() });
  const started = performance.now();
  const run = await first.start(long, steps);
  while ((await run.status()) !== "WAITING") await new Promise((resolve) => setTimeout(resolve, 20));
  const executionMs = performance.now() - started;
  await first.close();
  const second = await Tape.open({ store: url, runner: runner() });
  const woken = performance.now();
  await second.store.intake.signal("default", run.id, { name: "wake", value: 1 });
  while ((await Array.fromAsync(second.journal(run.id, { from: steps + 4 }))).length < 3)
    await new Promise((resolve) => setTimeout(resolve, 2));
  const replayMs = performance.now() - woken;
  await second.close();
  return {
    replayRecords: steps,
    executionMs: Math.round(executionMs),
    replayMs: Math.round(replayMs),
    replayRatio: round3(replayMs / executionMs),
  };
}

const round3 = (value: number): number => Math.round(value * 1000) / 1000;

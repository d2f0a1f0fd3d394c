import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { Tape } from "../src/host/tape.ts";
import { createRunner } from "../src/sdk/workflow.ts";
import { Statements } from "../src/store/sqlite/statements.ts";
import { startPostgres } from "../test/postgres/server.ts";
import { type RawWriter, rawPostgres, rawSqlite } from "./raw.ts";
import type { BenchOptions } from "./run.ts";
import { ten } from "./ten.ts";
import { median, say } from "./work.ts";

/** Writes of a ten-step run, one after the other: its start, ten steps, its end. */
const writes = 12;
const warmRuns = 300;

/** One write: what happened since the previous one, until it was handed to the store's database, and until it was durable. */
interface Phase {
  readonly engine: number;
  readonly work: number;
  readonly commit: number;
}

/** Times of the write that is measured now, in microseconds: handed over, about to commit (SQLite alone), durable. */
const marks: number[] = [];
let measuring = false;
const mark = (): void => {
  if (measuring) marks.push(performance.now() * 1_000);
};

/**
 * Where the time of a run goes while one run at a time is driven: medians in microseconds for its start, one of its
 * steps and its end, beside one raw row. `--memory`: the store is in memory, so that no disk is waited for.
 */
export async function benchPhases({ only, seconds, flags }: BenchOptions): Promise<object> {
  const inMemory = flags.includes("--memory") && existsSync("/dev/shm");
  const figures: Record<string, object> = {};
  const folder = await mkdtemp(join(inMemory ? "/dev/shm" : tmpdir(), "tape-phases-"));
  try {
    if (only !== "postgres") {
      watchSqlite();
      const urls = ["ours.db", "raw.db"].map((file) => join(folder, file)) as [string, string];
      figures.sqlite = await measure(
        "sqlite",
        `sqlite:${urls[0]}`,
        () => rawSqlite(urls[1]),
        `sqlite:${urls[1]}`,
        seconds,
      );
    }
    if (only !== "sqlite") {
      const server = await startPostgres({ major: 18, settings: {}, ...(inMemory && { parent: "/dev/shm" }) });
      watchPostgres();
      const raw = `${server.url}?schema=raw`;
      figures.postgres = await measure(
        "postgres",
        server.url,
        () => rawPostgres(server.url, "raw"),
        raw,
        seconds,
      ).finally(() => server.stop());
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return figures;
}

/** Begin, commit, committed. */
function watchSqlite(): void {
  const { begin, commit } = Statements.prototype;
  Statements.prototype.begin = function (): void {
    mark();
    begin.call(this);
  };
  Statements.prototype.commit = function (): void {
    mark();
    commit.call(this);
    mark();
  };
}

/** A named statement is sent, and its response has arrived. Others (wake hints) travel beside the run. */
function watchPostgres(): void {
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]): unknown {
    const sent = Reflect.apply(query, this, args) as Promise<unknown>;
    if ((args[0] as { name?: string } | undefined)?.name === undefined) return sent;
    mark();
    mark();
    return sent.finally(mark);
  } as typeof query;
}

async function measure(
  name: string,
  url: string,
  openRaw: () => RawWriter | Promise<RawWriter>,
  rawUrl: string,
  seconds: number,
): Promise<Record<string, number>> {
  await (await Tape.open({ store: rawUrl, runner: createRunner({ workflows: [] }) })).close(); // its tables
  const raw = await openRaw();
  const app = await Tape.open({ store: url, runner: createRunner({ workflows: [ten] }), concurrency: 100 });
  const runs: Phase[][] = [];
  const tails: number[] = [];
  const rows: number[] = [];
  try {
    for (let k = 0; k < warmRuns; k++) await (await app.start(ten, k)).result();
    await raw.run(1, 300);
    for (const until = performance.now() + seconds * 1_000; performance.now() < until; ) {
      for (let k = 0; k < 50; k++) {
        const { phases, tail } = await oneRun(app, k);
        if (phases.length !== writes) continue; // another writer's transaction came between
        runs.push(phases);
        tails.push(tail);
      }
      rows.push(1e6 / (await raw.run(1, 100)));
    }
  } finally {
    await app.close();
    await raw.close();
  }
  const of = (at: readonly number[], part: keyof Phase): number =>
    Math.round(median(runs.flatMap((run) => at.map((k) => run[k]![part]))) * 10) / 10;
  const steps = Array.from({ length: writes - 3 }, (_, k) => k + 2); // the first one follows the start
  const figures = {
    ...phaseFigures("start", [0], of),
    ...phaseFigures("firstStep", [1], of),
    ...phaseFigures("step", steps, of),
    ...phaseFigures("end", [writes - 1], of),
    tail: Math.round(median(tails) * 10) / 10,
    rawRow: Math.round(median(rows) * 10) / 10,
    runs: runs.length,
  };
  say(`${name}: ${JSON.stringify(figures)}`);
  return figures;
}

function phaseFigures(
  name: string,
  at: readonly number[],
  of: (at: readonly number[], part: keyof Phase) => number,
): Record<string, number> {
  return { [`${name}Engine`]: of(at, "engine"), [`${name}Work`]: of(at, "work"), [`${name}Commit`]: of(at, "commit") };
}

async function oneRun(app: Tape, input: number): Promise<{ phases: Phase[]; tail: number }> {
  marks.length = 0;
  measuring = true;
  let last = performance.now() * 1_000;
  await (await app.start(ten, input)).result();
  const ended = performance.now() * 1_000;
  measuring = false;
  const phases: Phase[] = [];
  for (let k = 0; k + 2 < marks.length; k += 3) {
    const [handed, committing, durable] = [marks[k]!, marks[k + 1]!, marks[k + 2]!];
    phases.push({ engine: handed - last, work: committing - handed, commit: durable - committing });
    last = durable;
  }
  return { phases, tail: ended - last };
}

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import pg from "pg";
import { startPostgres } from "../test/postgres/server.ts";
import { fill } from "./growth-fill.ts";
import type { Report } from "./migrate-process.ts";
import type { BenchOptions } from "./run.ts";
import { percentile, say } from "./work.ts";

/**
 * What a migration of a large store costs the processes that use it: three processes of this version start runs, then
 * three of the next version, which adds a column and an index, open the store at once.
 *
 *   quietP99Ms, migrationP99Ms   how long a start took before and during the migration
 *   ratio                        of the two
 *   failed                       starts and runs that did not end well; anything but 0 is a fault
 *   worse                        log lines at warn or error of the processes of this version
 */
export async function benchMigrate({ flags }: BenchOptions): Promise<object> {
  const { values } = parseArgs({
    args: [...flags],
    options: { runs: { type: "string" }, quiet: { type: "string" }, json: { type: "boolean" } },
  });
  const runs = Number(values.runs ?? 5_000_000);
  const quietMs = Number(values.quiet ?? 30) * 1_000;
  const folder = mkdtempSync(join(tmpdir(), "tape-migrate-"));
  const server = await startPostgres({ major: 18, settings: { max_wal_size: "4GB" }, parent: tmpdir() }); // memory has no room
  try {
    const started = performance.now();
    await fill(server.url, runs);
    say(`${runs} finished runs, filled in ${Math.round((performance.now() - started) / 1000)} s`);
    return { runs, ...(await measure(server.url, quietMs, folder)) };
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const startsPerSecond = 20;
const processes = 3;
const later = `-- online
alter table tape.runs add column if not exists later text;
create index concurrently runs_later on tape.runs(workflow, created_at, later);
`;

async function measure(url: string, quietMs: number, folder: string): Promise<object> {
  const file = join(folder, "later.sql");
  writeFileSync(file, later);
  const old = Array.from({ length: processes }, () => new Worker(url, "", startsPerSecond / processes));
  await Promise.all(old.map((worker) => worker.opened()));
  await pause(3_000); // plans are made, caches are filled
  const quiet = await during(old, () => pause(quietMs));
  say(`quiet: ${quiet.length} starts, p99 ${percentile(quiet, 0.99).toFixed(1)} ms`);
  const started = performance.now();
  const next = Array.from({ length: processes }, () => new Worker(url, file, 1));
  const migration = await during(old, async () => void (await Promise.all(next.map((worker) => worker.opened()))));
  const seconds = (performance.now() - started) / 1000;
  say(
    `migration: ${seconds.toFixed(1)} s, ${migration.length} starts, p99 ${percentile(migration, 0.99).toFixed(1)} ms`,
  );
  await pause(5_000); // side by side
  const all = [...old, ...next];
  await Promise.all(all.map((worker) => worker.stop()));
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query(
    "select indisvalid as valid from pg_index where indexrelid = 'tape.runs_later'::regclass",
  );
  await client.end();
  const round = (value: number): number => Math.round(value * 10) / 10;
  return {
    valid: rows[0]?.valid === true,
    migrationSeconds: round(seconds),
    starts: { quiet: quiet.length, migration: migration.length },
    quietP50Ms: round(percentile(quiet, 0.5)),
    quietP99Ms: round(percentile(quiet, 0.99)),
    migrationP50Ms: round(percentile(migration, 0.5)),
    migrationP99Ms: round(percentile(migration, 0.99)),
    migrationMostMs: round(Math.max(...migration)),
    ratio: round(percentile(migration, 0.99) / percentile(quiet, 0.99)),
    failed: all.reduce((sum, { failures }) => sum + failures.length, 0),
    failures: all.flatMap(({ failures }) => failures).slice(0, 5),
    worse: old.flatMap(({ logged }) => logged.filter((line) => !line.startsWith("info"))),
    progress: next.map(({ logged }) => logged.filter((line) => line.includes("store.migration_progress")).length),
    migrators: next.filter(({ logged }) => logged.some((line) => line.includes("store.migrating"))).length,
  };
}

/** How long the starts took that completed meanwhile. */
async function during(workers: readonly Worker[], work: () => Promise<void>): Promise<number[]> {
  for (const worker of workers) worker.took.length = 0;
  await work();
  return workers.flatMap(({ took }) => [...took]);
}

class Worker {
  readonly took: number[] = [];
  readonly failures: string[] = [];
  readonly logged: string[] = [];
  readonly #process: ChildProcess;
  readonly #opened = Promise.withResolvers<void>();
  readonly #ended: Promise<unknown>;

  constructor(url: string, migration: string, perSecond: number) {
    const file = fileURLToPath(new URL("migrate-process.ts", import.meta.url));
    this.#process = fork(file, [url, migration, String(perSecond)], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    this.#process.on("message", (report: Report) => this.#onNote(report));
    this.#process.once("exit", (code) => {
      if (code !== 0) this.failures.push(`the process ended with ${code}`);
      this.#opened.resolve();
    });
    this.#ended = once(this.#process, "exit");
  }

  #onNote(report: Report): void {
    if (report.say === "open") this.#opened.resolve();
    if (report.say === "started") this.took.push(report.ms);
    if (report.say === "failed") this.failures.push(report.error);
    if (report.say !== "log") return;
    this.logged.push(`${report.level} ${report.event} ${report.fields}`);
    if (report.event === "store.migration_progress") say(report.fields);
  }

  opened(): Promise<void> {
    return this.#opened.promise;
  }

  async stop(): Promise<void> {
    if (this.#process.connected) this.#process.send("stop");
    await this.#ended;
  }
}

// `npm run soak -- [--minutes N] [--store sqlite|postgres]`: mixed load for that long, with replicas that die, and
// measurements of memory, files, the store's log, tables, latency and throughput every five seconds. Exit code 0: nothing
// drifts; 1: something drifts, or nothing was proved; 2: wrong usage.
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startPostgres } from "../../test/postgres/server.ts";
import { ChurningReplicas, Replica } from "./replica.ts";
import { ownName, type StoreReport, type StoreWatch, watchPostgres, watchSqlite } from "./tables.ts";
import { type Bound, judge, type Series, table } from "./verdict.ts";
import type { SelfReport, WorkerOptions } from "./worker.ts";

const everyMs = 5_000;
const killEveryMs = 12_000;
const load = { perSecond: 25, leaseTtl: "6s", keepMs: 15_000 } as const;

interface Sample {
  /** Seconds since the previous sample. */
  readonly seconds: number;
  readonly referenceMs: number;
  readonly self: SelfReport;
  readonly store: StoreReport;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Time of a fixed piece of work, which shows the current load of the machine. */
function referenceWork(): number {
  const startedAt = performance.now();
  const hash = createHash("sha256");
  for (let k = 0; k < 200; k++) hash.update(block);
  hash.digest();
  return performance.now() - startedAt;
}
const block = Buffer.alloc(65_536, "x");

async function soak(url: string, watch: () => StoreWatch | Promise<StoreWatch>, minutes: number): Promise<boolean> {
  const options = (name: WorkerOptions["name"], share: number): WorkerOptions => ({
    ...load,
    url,
    name,
    perSecond: load.perSecond * share,
  });
  const steady = await Replica.start(options("steady", 1));
  const churning = new ChurningReplicas(options("churning", 0.4), killEveryMs);
  const store = await watch();
  const samples: Sample[] = [];
  const until = performance.now() + minutes * 60_000;
  let last = performance.now();
  try {
    while (performance.now() < until) {
      await pause(everyMs);
      const self = await steady.report();
      const now = performance.now();
      const measured = await store.measure();
      samples.push({ seconds: (now - last) / 1000, referenceMs: referenceWork(), self, store: measured });
      last = now;
      process.stderr.write(`${samples.length}: ${line(self, measured)}\n`);
    }
    return conclude(samples, churning.kills, minutes);
  } finally {
    await churning.end();
    await steady.stop();
    await store.close();
  }
}

const percentile = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length * share)] ?? 0;

function line({ rssMb, heapMb, files, finished, pruned, latencies }: SelfReport, { walMb, rows }: StoreReport): string {
  const p50 = percentile(latencies, 0.5).toFixed(1);
  return `${rssMb.toFixed(0)} MB, heap ${heapMb.toFixed(1)} MB, ${files} files, log ${walMb.toFixed(1)} MB, ${rows.runs} runs, ${rows.records} records, ${finished} finished, ${pruned} deleted, p50 ${p50} ms`;
}

/** Tables that grow by design, and for how many minutes. */
const growing: Readonly<Record<string, number>> = {
  tombstones: Number.POSITIVE_INFINITY, // one row for each deleted run, so that its id is never started again
  [ownName]: Number.POSITIVE_INFINITY, // one record for each deletion
  val_log: Number.POSITIVE_INFINITY, // transitions of values, for watchers
  witness: 180, // kept for ten minutes on PostgreSQL, for an hour on SQLite
};

function conclude(samples: readonly Sample[], kills: number, minutes: number): boolean {
  const of = (name: string, unit: string, bound: Bound, value: (sample: Sample) => number): Series => ({
    name,
    unit,
    bound,
    values: samples.map(value),
  });
  // Rows follow the load, and the load follows the machine. So rows are judged per existing run, and the number of runs in
  // seconds' worth of finished runs.
  const runs = (sample: Sample): number => Math.max(1, sample.store.rows.runs ?? 0);
  const tables = Object.keys(samples[0]?.store.rows ?? {}).flatMap((name) => {
    if (name === "runs") return [];
    const rows = (sample: Sample): number => sample.store.rows[name] ?? 0;
    if (minutes < (growing[name] ?? 0)) return [of(`rows of ${name}`, "", "grows", rows)];
    return [of(`rows of ${name} per run`, "", { up: 1.25, slack: 0.5 }, (sample) => rows(sample) / runs(sample))];
  });
  const series: Series[] = [
    of("memory (rss)", "MB", { up: 1.15, slack: 20 }, ({ self }) => self.rssMb),
    of("heap after collection", "MB", { up: 1.2, slack: 5 }, ({ self }) => self.heapMb),
    of("open files", "", { up: 1, slack: 5 }, ({ self }) => self.files),
    of("the store's log", "MB", { up: 1.5, slack: 8 }, ({ store }) => store.walMb),
    of("the store", "MB", { up: 1.3, slack: 10 }, ({ store }) => store.storeMb),
    // Other load on the machine is noise, so latency is judged relative to the reference work of the same moment.
    of("latency p50 of ten steps", "ms", "display", ({ self }) => percentile(self.latencies, 0.5)),
    of("latency p99 of ten steps", "ms", "display", ({ self }) => percentile(self.latencies, 0.99)),
    of("reference work", "ms", "display", ({ referenceMs }) => referenceMs),
    of("latency p50 ÷ reference work", "", { up: 2, slack: 1 }, (sample) => {
      return percentile(sample.self.latencies, 0.5) / sample.referenceMs;
    }),
    of("processor time per run", "ms", { up: 1.3, slack: 2 }, ({ self }) => self.cpuMs / Math.max(1, self.finished)),
    of("runs finished a second", "", { down: 0.7, slack: 2 }, ({ self, seconds }) => self.finished / seconds),
    of("runs in the store", "", "display", runs),
    of("runs in the store, in seconds of finished runs", "", { up: 2, slack: 15 }, (sample) => {
      return (runs(sample) * sample.seconds) / Math.max(1, sample.self.finished);
    }),
    ...tables,
  ];
  const judged = series.map((entry) => judge(entry, everyMs));
  const sum = (value: (sample: Sample) => number): number =>
    samples.reduce((total, sample) => total + value(sample), 0);
  const facts = {
    finished: sum(({ self }) => self.finished),
    failed: sum(({ self }) => self.failed),
    rejected: sum(({ self }) => self.rejected),
    deleted: sum(({ self }) => self.pruned),
    kills,
    takeovers: Math.max(0, ...samples.map(({ store }) => store.takeovers)),
  };
  console.log(table(judged));
  console.log(
    `\n${samples.length} samples; ${facts.finished} runs finished, ${facts.rejected} rejected by a busy store, ${facts.failed} failed unexpectedly, ${facts.deleted} deleted, ${kills} replicas killed, up to ${facts.takeovers} takeovers visible at once`,
  );
  const provedNothing = facts.finished === 0 || facts.deleted === 0 || kills === 0 || facts.takeovers === 0;
  if (provedNothing)
    console.log("NOTHING PROVED: no run finished, none was deleted, no replica died or no run was taken over");
  if (facts.failed > 0) console.log("BROKEN: runs failed unexpectedly");
  const drifting = judged.filter(({ verdict }) => verdict === "DRIFTS");
  for (const { name } of drifting) console.log(`DRIFTS: ${name}`);
  return drifting.length === 0 && !provedNothing && facts.failed === 0;
}

async function main(minutes: number, backend: string): Promise<boolean> {
  if (backend === "postgres") {
    const server = await startPostgres({ major: 18, settings: {} });
    try {
      return await soak(server.url, () => watchPostgres(server.url), minutes);
    } finally {
      await server.stop();
    }
  }
  const folder = mkdtempSync(join(tmpdir(), "tape-soak-"));
  const file = join(folder, "tape.db");
  try {
    return await soak(`sqlite:${file}`, () => watchSqlite(file), minutes);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const { values } = parseArgs({ options: { minutes: { type: "string" }, store: { type: "string" } } });
const minutes = Number(values.minutes ?? 10);
if (!(minutes > 0) || !["sqlite", "postgres", undefined].includes(values.store)) {
  console.error("usage: npm run soak -- [--minutes N] [--store sqlite|postgres]");
  process.exitCode = 2;
} else process.exitCode = (await main(minutes, values.store ?? "sqlite")) ? 0 : 1;

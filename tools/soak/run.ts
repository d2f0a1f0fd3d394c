// `npm run soak -- [--minutes N] [--store sqlite|postgres]`: mixed load for as long as wanted, with replicas that die,
// and a look at memory, files, the store's log, tables, latency and throughput every five seconds. Exit code 0: nothing
// drifts; 1: something does, or nothing happened; 2: wrong usage.
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startPostgres } from "../../test/postgres/server.ts";
import { Replica, Restless } from "./replica.ts";
import { ownName, type StoreReport, type StoreWatch, watchPostgres, watchSqlite } from "./tables.ts";
import { type Bound, judge, type Series, table } from "./verdict.ts";
import type { SelfReport, WorkerOrders } from "./worker.ts";

const everyMs = 5_000;
const diesEveryMs = 12_000;
const load = { perSecond: 25, leaseTtl: "6s", keepMs: 15_000 } as const;

interface Sample {
  /** Seconds since the sample before. */
  readonly seconds: number;
  readonly yardstickMs: number;
  readonly self: SelfReport;
  readonly store: StoreReport;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** How long the machine takes for the same piece of work, now: what its other tenants cost us is in it. */
function yardstick(): number {
  const begun = performance.now();
  const hash = createHash("sha256");
  for (let k = 0; k < 200; k++) hash.update(block);
  hash.digest();
  return performance.now() - begun;
}
const block = Buffer.alloc(65_536, "x");

async function soak(url: string, watch: () => StoreWatch | Promise<StoreWatch>, minutes: number): Promise<boolean> {
  const orders = (name: WorkerOrders["name"], share: number): WorkerOrders => ({
    ...load,
    url,
    name,
    perSecond: load.perSecond * share,
  });
  const steady = await Replica.start(orders("steady", 1));
  const restless = new Restless(orders("restless", 0.4), diesEveryMs);
  const store = await watch();
  const samples: Sample[] = [];
  const until = performance.now() + minutes * 60_000;
  let last = performance.now();
  try {
    while (performance.now() < until) {
      await pause(everyMs);
      const self = await steady.report();
      const now = performance.now();
      const seen = await store.look();
      samples.push({ seconds: (now - last) / 1000, yardstickMs: yardstick(), self, store: seen });
      last = now;
      process.stderr.write(`${samples.length}: ${line(self, seen)}\n`);
    }
    return conclude(samples, restless.deaths, minutes);
  } finally {
    await restless.end();
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

/** Tables that grow by design, and until when (minutes). */
const growing: Readonly<Record<string, number>> = {
  tombstones: Number.POSITIVE_INFINITY, // a line for each deleted run: its id is never started again
  [ownName]: Number.POSITIVE_INFINITY, // and a record of its deletion
  val_log: Number.POSITIVE_INFINITY, // transitions of values, for those who watch them
  witness: 180, // kept for ten minutes on PostgreSQL, for an hour on SQLite
};

function conclude(samples: readonly Sample[], deaths: number, minutes: number): boolean {
  const of = (name: string, unit: string, bound: Bound, value: (sample: Sample) => number): Series => ({
    name,
    unit,
    bound,
    values: samples.map(value),
  });
  // Rows follow the load, and the load follows the machine: what is judged is how many there are for each run in sight,
  // and for how many seconds' worth of finished runs there are runs at all.
  const runs = (sample: Sample): number => Math.max(1, sample.store.rows.runs ?? 0);
  const tables = Object.keys(samples[0]?.store.rows ?? {}).flatMap((name) => {
    if (name === "runs") return [];
    const rows = (sample: Sample): number => sample.store.rows[name] ?? 0;
    if (minutes < (growing[name] ?? 0)) return [of(`rows of ${name}`, "", "grows", rows)];
    return [of(`rows of ${name} for each run`, "", { up: 1.25, slack: 0.5 }, (sample) => rows(sample) / runs(sample))];
  });
  const series: Series[] = [
    of("memory (rss)", "MB", { up: 1.15, slack: 20 }, ({ self }) => self.rssMb),
    of("heap after collection", "MB", { up: 1.2, slack: 5 }, ({ self }) => self.heapMb),
    of("open files", "", { up: 1, slack: 5 }, ({ self }) => self.files),
    of("the store's log", "MB", { up: 1.5, slack: 8 }, ({ store }) => store.walMb),
    of("the store", "MB", { up: 1.3, slack: 10 }, ({ store }) => store.storeMb),
    // Neighbours on the machine are noise: latency is judged by what the machine does in the same moment.
    of("latency p50 of ten steps", "ms", "shown", ({ self }) => percentile(self.latencies, 0.5)),
    of("latency p99 of ten steps", "ms", "shown", ({ self }) => percentile(self.latencies, 0.99)),
    of("the same piece of work", "ms", "shown", ({ yardstickMs }) => yardstickMs),
    of("latency p50 by that", "", { up: 2, slack: 1 }, (one) => percentile(one.self.latencies, 0.5) / one.yardstickMs),
    of(
      "work of the processor for a run",
      "ms",
      { up: 1.3, slack: 2 },
      ({ self }) => self.cpuMs / Math.max(1, self.finished),
    ),
    of("runs finished a second", "", { down: 0.7, slack: 2 }, ({ self, seconds }) => self.finished / seconds),
    of("runs in the store", "", "shown", runs),
    of("the same in seconds of finished runs", "", { up: 2, slack: 15 }, (sample) => {
      return (runs(sample) * sample.seconds) / Math.max(1, sample.self.finished);
    }),
    ...tables,
  ];
  const judged = series.map((one) => judge(one, everyMs));
  const sum = (value: (sample: Sample) => number): number =>
    samples.reduce((total, sample) => total + value(sample), 0);
  const facts = {
    finished: sum(({ self }) => self.finished),
    failed: sum(({ self }) => self.failed),
    refused: sum(({ self }) => self.refused),
    deleted: sum(({ self }) => self.pruned),
    deaths,
    takeovers: Math.max(0, ...samples.map(({ store }) => store.takeovers)),
  };
  console.log(table(judged));
  console.log(
    `\n${samples.length} samples; ${facts.finished} runs finished, ${facts.refused} refused by a busy store, ${facts.failed} went wrong, ${facts.deleted} deleted, ${deaths} replicas killed, up to ${facts.takeovers} takeovers in sight at once`,
  );
  const vacuous = facts.finished === 0 || facts.deleted === 0 || deaths === 0 || facts.takeovers === 0;
  if (vacuous) console.log("NOTHING PROVED: no run finished, none was deleted, no replica died or nobody took over");
  if (facts.failed > 0) console.log("BROKEN: runs went wrong");
  const drifting = judged.filter(({ verdict }) => verdict === "DRIFTS");
  for (const { name } of drifting) console.log(`DRIFTS: ${name}`);
  return drifting.length === 0 && !vacuous && facts.failed === 0;
}

async function main(minutes: number, where: string): Promise<boolean> {
  if (where === "postgres") {
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

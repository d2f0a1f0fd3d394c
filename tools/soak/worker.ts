// A replica under steady load. `steady` runs for the whole soak, prunes, and reports on request; `churning` is killed
// repeatedly, so that `steady` has to take over its runs.
import { readdirSync } from "node:fs";
import { isTapeError, Tape } from "../../src/exports/index.ts";
import { gated, go, kinds, runner, steps } from "./flows.ts";

export interface WorkerOptions {
  readonly url: string;
  readonly name: "steady" | "churning";
  readonly perSecond: number;
  readonly leaseTtl: "6s";
  /** Finished runs older than this are deleted. */
  readonly keepMs: number;
}

/** Figures of a process since its last report. */
export interface SelfReport {
  readonly rssMb: number;
  readonly heapMb: number;
  readonly files: number;
  readonly cpuMs: number;
  readonly finished: number;
  readonly failed: number;
  /** Calls that a busy store rejected without writing anything. */
  readonly rejected: number;
  readonly pruned: number;
  /** Latencies of plain ten-step runs, from start to result. */
  readonly latencies: readonly number[];
}

const options = JSON.parse(process.argv[2]!) as WorkerOptions;
const app = await Tape.open({ store: options.url, runner: runner(), leaseTtl: options.leaseTtl });
let finished = 0;
let failed = 0;
let rejected = 0;
let pruned = 0;
let latencies: number[] = [];
let n = 0;
let cpu = process.cpuUsage();

async function startRun(): Promise<void> {
  const kind = kinds[n++ % kinds.length]!;
  const startedAt = performance.now();
  const run = await app.start<number, unknown>(kind, n);
  if (kind === gated) await app.signal(run.id, go, "yes", { key: "go" });
  // A saga fails by design.
  await run.result().catch((error: unknown) => {
    if (!isTapeError(error, "TAPE_RUN_FAILED")) throw error;
  });
  if (kind === steps) latencies.push(performance.now() - startedAt);
  finished++;
}

/** Limits the load on a slow machine: a backlog would look like drift. */
const maxAtOnce = 100;
let atOnce = 0;
const period = 1000 / options.perSecond;
const load = setInterval(() => {
  if (atOnce >= maxAtOnce) return;
  atOnce++;
  const done = startRun().finally(() => atOnce--);
  done.catch((error: unknown) => {
    if (isTapeError(error, "TAPE_STORE_BUSY") || isTapeError(error, "TAPE_STORE_UNREACHABLE")) rejected++;
    else failed++;
    process.stderr.write(`${options.name}: ${error instanceof Error ? error.message : String(error)}\n`);
  });
}, period);

async function prune(): Promise<void> {
  for (let count = 1; count > 0; pruned += count)
    count = await app.store.intake.prune(app.tenant, Date.now() - options.keepMs, 500);
}
const pruning = options.name === "steady" ? setInterval(() => void prune().catch(() => failed++), 5_000) : undefined;

process.on("message", async (command: "report" | "stop") => {
  if (command === "stop") {
    clearInterval(load);
    clearInterval(pruning);
    await app.close();
    process.disconnect?.();
    return;
  }
  global.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  const files = readdirSync("/proc/self/fd").length;
  const { user, system } = process.cpuUsage(cpu);
  const sizes = { rssMb: rss / 1e6, heapMb: heapUsed / 1e6, files, cpuMs: (user + system) / 1000 };
  process.send?.({ ...sizes, finished, failed, rejected, pruned, latencies } satisfies SelfReport);
  cpu = process.cpuUsage();
  [finished, failed, rejected, pruned, latencies] = [0, 0, 0, 0, []];
});
process.once("disconnect", () => process.exit());
process.send?.("ready");

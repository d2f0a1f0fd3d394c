// A replica under steady load. `steady` lives for the whole soak, prunes, and tells about itself when asked;
// `restless` is killed again and again, so that somebody has to take over what it left behind.
import { readdirSync } from "node:fs";
import { isTapeError, Tape } from "../../src/exports/index.ts";
import { asks, go, kinds, runner, steps } from "./flows.ts";

export interface WorkerOrders {
  readonly url: string;
  readonly name: "steady" | "restless";
  readonly perSecond: number;
  readonly leaseTtl: "6s";
  /** Finished runs older than this are deleted. */
  readonly keepMs: number;
}

/** What a process says of itself since it was last asked. */
export interface SelfReport {
  readonly rssMb: number;
  readonly heapMb: number;
  readonly files: number;
  readonly cpuMs: number;
  readonly finished: number;
  readonly failed: number;
  /** A busy store said so, and nothing was written by that call. */
  readonly refused: number;
  readonly pruned: number;
  /** Of plain ten-step runs, from start to result. */
  readonly latencies: readonly number[];
}

const orders = JSON.parse(process.argv[2]!) as WorkerOrders;
const app = await Tape.open({ store: orders.url, runner: runner(), leaseTtl: orders.leaseTtl });
let finished = 0;
let failed = 0;
let refused = 0;
let pruned = 0;
let latencies: number[] = [];
let n = 0;
let cpu = process.cpuUsage();

async function one(): Promise<void> {
  const kind = kinds[n++ % kinds.length]!;
  const begun = performance.now();
  const run = await app.start<number, unknown>(kind, n);
  if (kind === asks) await app.signal(run.id, go, "yes", { key: "go" });
  // A saga ends in a refusal, which is its result.
  await run.result().catch((error: unknown) => {
    if (!isTapeError(error, "TAPE_RUN_FAILED")) throw error;
  });
  if (kind === steps) latencies.push(performance.now() - begun);
  finished++;
}

/** A machine that cannot keep up is not asked for more: a backlog would look like drift. */
const mostAtOnce = 100;
let atOnce = 0;
const period = 1000 / orders.perSecond;
const load = setInterval(() => {
  if (atOnce >= mostAtOnce) return;
  atOnce++;
  const done = one().finally(() => atOnce--);
  done.catch((error: unknown) => {
    if (isTapeError(error, "TAPE_STORE_BUSY") || isTapeError(error, "TAPE_STORE_UNREACHABLE")) refused++;
    else failed++;
    process.stderr.write(`${orders.name}: ${error instanceof Error ? error.message : String(error)}\n`);
  });
}, period);

async function prune(): Promise<void> {
  for (let gone = 1; gone > 0; pruned += gone)
    gone = await app.store.intake.prune(app.tenant, Date.now() - orders.keepMs, 500);
}
const pruning = orders.name === "steady" ? setInterval(() => void prune().catch(() => failed++), 5_000) : undefined;

process.on("message", async (word: "report" | "stop") => {
  if (word === "stop") {
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
  process.send?.({ ...sizes, finished, failed, refused, pruned, latencies } satisfies SelfReport);
  cpu = process.cpuUsage();
  [finished, failed, refused, pruned, latencies] = [0, 0, 0, 0, []];
});
process.once("disconnect", () => process.exit());
process.send?.("ready");

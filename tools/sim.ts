// `npm run sim -- [--minutes N] [--seeds N] [--from S] [--seed S] [--jobs N]`: the simulation of test/simulation with
// any number of seeds. Exits with 1 if an invariant breaks or judges nothing, or if a mark of coverage.ts is never
// reached.
import { type ChildProcess, fork } from "node:child_process";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { coverageMarks } from "../simulation/coverage.ts";
import { describePlan } from "../simulation/minimise.ts";
import { planOf } from "../simulation/plan.ts";
import { noStats, type SimulationStats, sumOf } from "../simulation/stats.ts";
import {
  addJudged,
  explain,
  neverJudged,
  neverReached,
  nothingJudged,
  type SeedReport,
  simulateSeed,
} from "../simulation/suite.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string" },
    seeds: { type: "string" },
    from: { type: "string" },
    seed: { type: "string" },
    jobs: { type: "string" },
    worker: { type: "boolean", default: false },
  },
});

/** Seeds that a worker gets at once: few, so that all workers end together. */
const batch = 10;
/** One seed in this many is simulated twice. */
const twiceEvery = 50;
const printEveryMs = 10_000;

interface SeedOutcome {
  readonly report: SeedReport;
  readonly failure: string | undefined;
}

async function simulateOne(seed: number | string, twice: boolean): Promise<SeedOutcome> {
  const report = await simulateSeed(seed, twice);
  return { report, failure: report.broken.length === 0 ? undefined : await explain(report) };
}

/** Message to a worker. */
type WorkerMessage = { readonly seeds: readonly number[] } | { readonly end: true };

async function runWorker(): Promise<void> {
  process.on("message", async (message: WorkerMessage) => {
    if ("end" in message) process.exit(0);
    for (const seed of message.seeds) process.send!(await simulateOne(seed, seed % twiceEvery === 0));
    process.send!("more");
  });
  process.send!("more");
}

class Totals {
  readonly #startedAt = performance.now();
  readonly #coverage: Record<string, number> = Object.fromEntries(Object.keys(coverageMarks).map((mark) => [mark, 0]));
  #judged: SeedReport["judged"] = nothingJudged;
  #stats: SimulationStats = noStats;
  #seeds = 0;
  #failures = 0;
  #lastPrint = 0;

  add({ report, failure }: SeedOutcome): void {
    this.#seeds++;
    this.#stats = sumOf(this.#stats, report.stats);
    this.#judged = addJudged(this.#judged, report.judged);
    for (const mark of report.marks) this.#coverage[mark]!++;
    if (failure !== undefined) {
      this.#failures++;
      console.log(`\n${failure}\n`);
    }
    const passed = performance.now() - this.#startedAt;
    if (passed - this.#lastPrint < printEveryMs) return;
    this.#lastPrint = passed;
    const { takeovers, faults } = this.#stats;
    console.log(
      `${this.#seeds} seeds, ${this.#rate()}/s, ${faults} faults, ${takeovers} takeovers, ${this.#failures} broken`,
    );
  }

  end(): number {
    const { virtualMs, events, faults, takeovers, staleRefused, unknownsSettled, runs, laneCalls, laneReplays } =
      this.#stats;
    const missed = neverReached({ coverage: this.#coverage });
    const notJudged = neverJudged({ judged: this.#judged });
    const invariants = Object.keys(this.#judged).length;
    for (const [title, counts] of [
      ["seeds that reached each mark", this.#coverage],
      ["objects judged by each invariant", this.#judged],
    ] as const) {
      console.log(`\n${title}`);
      for (const [name, count] of Object.entries(counts)) console.log(`${String(count).padStart(9)}  ${name}`);
    }
    console.log(`
seeds                 ${this.#seeds} (${this.#rate()} a second)
virtual time          ${(virtualMs / 3_600_000).toFixed(1)} hours, ${events} events
runs                  ${runs}
faults injected       ${faults}
takeovers             ${takeovers}
stale writes rejected ${staleRefused}
UNKNOWNs settled      ${unknownsSettled}
lane results judged   ${laneCalls}, ${laneReplays} replayed
marks hit             ${Object.keys(coverageMarks).length - missed.length} of ${Object.keys(coverageMarks).length}
invariants judging    ${invariants - notJudged.length} of ${invariants}
violations            ${this.#failures}`);
    if (missed.length > 0) console.log(`never reached: ${missed.join(", ")}`);
    if (notJudged.length > 0) console.log(`judged nothing: ${notJudged.join(", ")}`);
    return this.#failures > 0 || missed.length > 0 || notJudged.length > 0 ? 1 : 0;
  }

  #rate(): string {
    return ((this.#seeds * 1_000) / (performance.now() - this.#startedAt)).toFixed(1);
  }
}

/** Distributes seeds to workers until none are left. */
async function distribute(next: () => number[], jobs: number, totals: Totals): Promise<void> {
  const worker = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const child: ChildProcess = fork(fileURLToPath(import.meta.url), ["--worker"]);
      child.on("message", (message: SeedOutcome | "more") => {
        if (message !== "more") return totals.add(message);
        const seeds = next();
        child.send(seeds.length === 0 ? { end: true } : { seeds });
      });
      child.on("error", reject);
      child.on("exit", (code) => (code === 0 ? resolve() : reject(new Error(`a worker exited with ${code}`))));
    });
  await Promise.all(Array.from({ length: jobs }, worker));
}

async function simulateMany(): Promise<number> {
  const minutes = values.minutes === undefined ? undefined : Number(values.minutes);
  const count = Number(values.seeds ?? (minutes === undefined ? 1_000 : Number.POSITIVE_INFINITY));
  // A timed run takes seeds of its own every day.
  const fresh = Math.floor(Date.now() / 86_400_000) * 1_000_000;
  const from = Number(values.from ?? (minutes === undefined ? 1 : fresh));
  const jobs = Number(values.jobs ?? (minutes === undefined ? 1 : availableParallelism()));
  const until = performance.now() + (minutes ?? Number.POSITIVE_INFINITY) * 60_000;
  console.log(
    `from seed ${from}, ${minutes === undefined ? `${count} seeds` : `${minutes} minutes`}, ${jobs} at a time`,
  );
  const totals = new Totals();
  let seed = from;
  const next = (): number[] => {
    const left = Math.min(batch, from + count - seed);
    if (left <= 0 || performance.now() > until) return [];
    const seeds = Array.from({ length: left }, (_, k) => seed + k);
    seed += left;
    return seeds;
  };
  if (jobs > 1) await distribute(next, jobs, totals);
  else {
    for (let seeds = next(); seeds.length > 0; seeds = next()) {
      for (const one of seeds) totals.add(await simulateOne(one, one % twiceEvery === 0));
    }
  }
  return totals.end();
}

async function simulateAndPrint(seed: string): Promise<number> {
  console.log(describePlan(planOf(seed)).join("\n"));
  const { report, failure } = await simulateOne(seed, true);
  console.log(failure === undefined ? `\nseed ${seed} holds` : `\n${failure}`);
  console.log(`\nmarks reached: ${report.marks.join(", ")}`);
  return failure === undefined ? 0 : 1;
}

if (values.worker) await runWorker();
else process.exitCode = values.seed === undefined ? await simulateMany() : await simulateAndPrint(values.seed);

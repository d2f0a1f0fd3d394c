// `npm run sim -- [--minutes N] [--seeds N] [--from S] [--seed S] [--jobs N]`: the simulation of test/simulation with as
// many seeds as wanted. Exits with 1 where an invariant broke or judged nothing, or where a mark of coverage.ts was
// never reached.
import { type ChildProcess, fork } from "node:child_process";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { coverageMarks } from "../simulation/coverage.ts";
import { type Figures, noFigures, sumOf } from "../simulation/figures.ts";
import { describePlan } from "../simulation/minimise.ts";
import { planOf } from "../simulation/plan.ts";
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

/** Seeds that a worker gets at once: few enough that all end together. */
const batch = 10;
/** One in so many is played twice. */
const twiceEvery = 50;
const everyMs = 10_000;

interface Played {
  readonly report: SeedReport;
  readonly failure: string | undefined;
}

async function play(seed: number | string, twice: boolean): Promise<Played> {
  const report = await simulateSeed(seed, twice);
  return { report, failure: report.broken.length === 0 ? undefined : await explain(report) };
}

/** What a worker is told and answers. */
type Told = { readonly seeds: readonly number[] } | { readonly end: true };

async function work(): Promise<void> {
  process.on("message", async (told: Told) => {
    if ("end" in told) process.exit(0);
    for (const seed of told.seeds) process.send!(await play(seed, seed % twiceEvery === 0));
    process.send!("more");
  });
  process.send!("more");
}

class Tally {
  readonly #began = performance.now();
  readonly #coverage: Record<string, number> = Object.fromEntries(Object.keys(coverageMarks).map((mark) => [mark, 0]));
  #judged: SeedReport["judged"] = nothingJudged;
  #figures: Figures = noFigures;
  #seeds = 0;
  #failures = 0;
  #told = 0;

  take({ report, failure }: Played): void {
    this.#seeds++;
    this.#figures = sumOf(this.#figures, report.figures);
    this.#judged = addJudged(this.#judged, report.judged);
    for (const mark of report.marks) this.#coverage[mark]!++;
    if (failure !== undefined) {
      this.#failures++;
      console.log(`\n${failure}\n`);
    }
    const passed = performance.now() - this.#began;
    if (passed - this.#told < everyMs) return;
    this.#told = passed;
    const { takeovers, faults } = this.#figures;
    console.log(
      `${this.#seeds} seeds, ${this.#rate()}/s, ${faults} faults, ${takeovers} takeovers, ${this.#failures} broken`,
    );
  }

  end(): number {
    const { virtualMs, events, faults, takeovers, staleRefused, doubtsSettled, runs, laneAnswers, laneReplays } =
      this.#figures;
    const missed = neverReached({ coverage: this.#coverage });
    const idle = neverJudged({ judged: this.#judged });
    const invariants = Object.keys(this.#judged).length;
    for (const [title, counts] of [
      ["seeds that reached a mark", this.#coverage],
      ["objects that an invariant judged", this.#judged],
    ] as const) {
      console.log(`\n${title}`);
      for (const [name, count] of Object.entries(counts)) console.log(`${String(count).padStart(9)}  ${name}`);
    }
    console.log(`
seeds                 ${this.#seeds} (${this.#rate()} a second)
virtual time          ${(virtualMs / 3_600_000).toFixed(1)} hours, ${events} events
runs                  ${runs}
faults that bit       ${faults}
takeovers             ${takeovers}
stale writes refused  ${staleRefused}
UNKNOWNs settled      ${doubtsSettled}
lane answers judged   ${laneAnswers}, ${laneReplays} of them replayed
marks hit             ${Object.keys(coverageMarks).length - missed.length} of ${Object.keys(coverageMarks).length}
invariants at work    ${invariants - idle.length} of ${invariants}
violations            ${this.#failures}`);
    if (missed.length > 0) console.log(`never reached: ${missed.join(", ")}`);
    if (idle.length > 0) console.log(`judged nothing: ${idle.join(", ")}`);
    return this.#failures > 0 || missed.length > 0 || idle.length > 0 ? 1 : 0;
  }

  #rate(): string {
    return ((this.#seeds * 1_000) / (performance.now() - this.#began)).toFixed(1);
  }
}

/** Hands seeds to workers until there are no more. */
async function share(next: () => number[], jobs: number, tally: Tally): Promise<void> {
  const worker = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const child: ChildProcess = fork(fileURLToPath(import.meta.url), ["--worker"]);
      child.on("message", (said: Played | "more") => {
        if (said !== "more") return tally.take(said);
        const seeds = next();
        child.send(seeds.length === 0 ? { end: true } : { seeds });
      });
      child.on("error", reject);
      child.on("exit", (code) => (code === 0 ? resolve() : reject(new Error(`a worker ended with ${code}`))));
    });
  await Promise.all(Array.from({ length: jobs }, worker));
}

async function many(): Promise<number> {
  const minutes = values.minutes === undefined ? undefined : Number(values.minutes);
  const count = Number(values.seeds ?? (minutes === undefined ? 1_000 : Number.POSITIVE_INFINITY));
  // The long version looks where nobody has looked before: every day at other seeds.
  const fresh = Math.floor(Date.now() / 86_400_000) * 1_000_000;
  const from = Number(values.from ?? (minutes === undefined ? 1 : fresh));
  const jobs = Number(values.jobs ?? (minutes === undefined ? 1 : availableParallelism()));
  const until = performance.now() + (minutes ?? Number.POSITIVE_INFINITY) * 60_000;
  console.log(
    `from seed ${from}, ${minutes === undefined ? `${count} seeds` : `${minutes} minutes`}, ${jobs} at a time`,
  );
  const tally = new Tally();
  let seed = from;
  const next = (): number[] => {
    const left = Math.min(batch, from + count - seed);
    if (left <= 0 || performance.now() > until) return [];
    const seeds = Array.from({ length: left }, (_, k) => seed + k);
    seed += left;
    return seeds;
  };
  if (jobs > 1) await share(next, jobs, tally);
  else {
    for (let seeds = next(); seeds.length > 0; seeds = next()) {
      for (const one of seeds) tally.take(await play(one, one % twiceEvery === 0));
    }
  }
  return tally.end();
}

async function one(seed: string): Promise<number> {
  console.log(describePlan(planOf(seed)).join("\n"));
  const { report, failure } = await play(seed, true);
  console.log(failure === undefined ? `\nseed ${seed} holds` : `\n${failure}`);
  console.log(`\nreached: ${report.marks.join(", ")}`);
  return failure === undefined ? 0 : 1;
}

if (values.worker) await work();
else process.exitCode = values.seed === undefined ? await many() : await one(values.seed);

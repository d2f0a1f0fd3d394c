import { createHash } from "node:crypto";
import { coverageMarks, marksOf } from "./coverage.ts";
import type { Evidence } from "./evidence.ts";
import { type InvariantReport, invariants, judge } from "./invariants/index.ts";
import { describePlan, minimise } from "./minimise.ts";
import { type Plan, planOf } from "./plan.ts";
import { simulate } from "./simulate.ts";
import { noStats, type SimulationStats, statsOf, sumOf } from "./stats.ts";

export interface SeedReport extends InvariantReport {
  readonly seed: number | string;
  readonly marks: readonly string[];
  readonly stats: SimulationStats;
  readonly events: number;
  readonly virtualMs: number;
}

export interface SuiteReport {
  readonly seeds: number;
  /** A description of each failing seed, with the smallest plan that still fails. */
  readonly failures: readonly string[];
  /** How many seeds reached each mark. */
  readonly coverage: Readonly<Record<string, number>>;
  /** How many objects each invariant applied to. */
  readonly judged: Readonly<Record<string, number>>;
  readonly stats: SimulationStats;
}

/** One seed in this many is simulated twice. */
const twiceEvery = 50;
/** Explaining takes long: the first few failures suffice. */
const maxExplained = 3;

/** Simulates one seed, once or twice. Both times it must write the same feed, also in a new database. */
export async function simulateSeed(seed: number | string, twice = false): Promise<SeedReport> {
  const plan = planOf(seed);
  const { evidence, broken, judged } = await simulateAndJudge(plan);
  if (twice && evidence !== undefined) {
    const again = await simulateAndJudge(plan, true);
    if (again.evidence === undefined || feedHash(again.evidence) !== feedHash(evidence)) {
      broken.push("determinism: the same seed wrote a different feed");
    }
  }
  const { events = 0, virtualMs = 0 } = evidence ?? {};
  const stats = evidence === undefined ? noStats : statsOf(evidence);
  const marks = evidence === undefined ? [] : marksOf(evidence);
  return { seed, broken, judged, marks, stats, events, virtualMs };
}

/** Simulates many seeds and adds up their reports. */
export async function simulateSeeds(
  seeds: Iterable<number | string>,
  onSeed: (report: SeedReport) => void = () => {},
): Promise<SuiteReport> {
  const coverage = Object.fromEntries(Object.keys(coverageMarks).map((mark) => [mark, 0]));
  const failures: string[] = [];
  let judged = nothingJudged;
  let stats = noStats;
  let count = 0;
  for (const seed of seeds) {
    const report = await simulateSeed(seed, count++ % twiceEvery === 0);
    stats = sumOf(stats, report.stats);
    judged = addJudged(judged, report.judged);
    for (const mark of report.marks) coverage[mark]!++;
    if (report.broken.length > 0) failures.push(await explain(report, failures.length < maxExplained));
    onSeed(report);
  }
  return { seeds: count, failures, coverage, judged, stats };
}

/** Marks that no seed reached: the suite proves nothing about them. */
export const neverReached = ({ coverage }: Pick<SuiteReport, "coverage">): string[] =>
  Object.keys(coverageMarks).filter((mark) => (coverage[mark] ?? 0) === 0);

type Counts = Readonly<Record<string, number>>;

export const nothingJudged: Counts = Object.fromEntries(Object.keys(invariants).map((name) => [name, 0]));

export const addJudged = (sum: Counts, more: Counts): Counts =>
  Object.fromEntries(Object.keys(invariants).map((name) => [name, (sum[name] ?? 0) + (more[name] ?? 0)]));

/** Invariants that applied to nothing in any seed: they prove nothing. */
export const neverJudged = ({ judged }: Pick<SuiteReport, "judged">): string[] =>
  Object.keys(invariants).filter((name) => (judged[name] ?? 0) === 0);

/** The seed, what broke, how to repeat it, and the smallest plan that breaks the same invariant. */
export async function explain({ seed, broken }: SeedReport, minimal = true): Promise<string> {
  const name = `${broken[0]!.split(":")[0]!}:`;
  const plan = planOf(seed);
  const still = async (fewer: Plan): Promise<boolean> =>
    (await simulateAndJudge(fewer)).broken.some((other) => other.startsWith(name));
  const part = minimal ? await minimise(plan, still) : plan;
  const lines = describePlan(part).map((line) => `  ${line}`);
  const again = `  npm run sim -- --seed ${seed}`;
  return [`seed ${seed}`, ...broken.slice(0, 5), "to repeat it:", again, "smallest failing plan:", ...lines].join("\n");
}

interface Outcome {
  /** undefined: the simulation threw. */
  readonly evidence: Evidence | undefined;
  readonly broken: string[];
  readonly judged: Counts;
}

async function simulateAndJudge(plan: Plan, fresh = false): Promise<Outcome> {
  try {
    const evidence = await simulate(plan, { fresh });
    const { broken, judged } = judge(evidence);
    return { evidence, broken: [...broken], judged };
  } catch (error) {
    const broken = [`thrown: ${(error as Error).stack ?? String(error)}`];
    return { evidence: undefined, broken, judged: nothingJudged };
  }
}

function feedHash({ feed, world }: Evidence): string {
  const text = JSON.stringify([feed, world], (_key, value: unknown) =>
    typeof value === "bigint" ? `${value}` : value,
  );
  return createHash("sha256").update(text).digest("hex");
}

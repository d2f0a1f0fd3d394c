import { createHash } from "node:crypto";
import { coverageMarks, marksOf } from "./coverage.ts";
import type { Evidence } from "./evidence.ts";
import { type Figures, figuresOf, noFigures, sumOf } from "./figures.ts";
import { invariants, type Judged, judge } from "./invariants/index.ts";
import { describePlan, minimise } from "./minimise.ts";
import { type Plan, planOf } from "./plan.ts";
import { simulate } from "./simulate.ts";

export interface SeedReport extends Judged {
  readonly seed: number | string;
  readonly marks: readonly string[];
  readonly figures: Figures;
  readonly events: number;
  readonly virtualMs: number;
}

export interface SuiteReport {
  readonly seeds: number;
  /** Each failing seed in words, with the least that it needs to fail. */
  readonly failures: readonly string[];
  /** How many seeds reached each mark. */
  readonly coverage: Readonly<Record<string, number>>;
  /** To how many objects each invariant applied. */
  readonly judged: Readonly<Record<string, number>>;
  readonly figures: Figures;
}

/** One seed in so many is played twice. */
const twiceEvery = 50;
/** Explaining takes its time: the first few failures tell enough. */
const maxExplained = 3;

/** One seed, once or twice: the same seed must write the same feed, also in a database that nobody has used before. */
export async function simulateSeed(seed: number | string, twice = false): Promise<SeedReport> {
  const plan = planOf(seed);
  const { evidence, broken, judged } = await playAndJudge(plan);
  if (twice && evidence !== undefined) {
    const again = await playAndJudge(plan, true);
    if (again.evidence === undefined || feedHash(again.evidence) !== feedHash(evidence)) {
      broken.push("determinism: the same seed wrote another feed");
    }
  }
  const { events = 0, virtualMs = 0 } = evidence ?? {};
  const figures = evidence === undefined ? noFigures : figuresOf(evidence);
  const marks = evidence === undefined ? [] : marksOf(evidence);
  return { seed, broken, judged, marks, figures, events, virtualMs };
}

/** Many seeds, and what they reached together. */
export async function simulateSeeds(
  seeds: Iterable<number | string>,
  onSeed: (report: SeedReport) => void = () => {},
): Promise<SuiteReport> {
  const coverage = Object.fromEntries(Object.keys(coverageMarks).map((mark) => [mark, 0]));
  const failures: string[] = [];
  let judged = nothingJudged;
  let figures = noFigures;
  let count = 0;
  for (const seed of seeds) {
    const report = await simulateSeed(seed, count++ % twiceEvery === 0);
    figures = sumOf(figures, report.figures);
    judged = addJudged(judged, report.judged);
    for (const mark of report.marks) coverage[mark]!++;
    if (report.broken.length > 0) failures.push(await explain(report, failures.length < maxExplained));
    onSeed(report);
  }
  return { seeds: count, failures, coverage, judged, figures };
}

/** Marks that no seed has reached: a suite that never comes there proves nothing about it. */
export const neverReached = ({ coverage }: Pick<SuiteReport, "coverage">): string[] =>
  Object.keys(coverageMarks).filter((mark) => (coverage[mark] ?? 0) === 0);

type Counts = Readonly<Record<string, number>>;

export const nothingJudged: Counts = Object.fromEntries(Object.keys(invariants).map((name) => [name, 0]));

export const addJudged = (sum: Counts, more: Counts): Counts =>
  Object.fromEntries(Object.keys(invariants).map((name) => [name, (sum[name] ?? 0) + (more[name] ?? 0)]));

/** Invariants that applied to nothing in any seed: they held, and prove nothing. */
export const neverJudged = ({ judged }: Pick<SuiteReport, "judged">): string[] =>
  Object.keys(invariants).filter((name) => (judged[name] ?? 0) === 0);

/** The seed, what broke, how to play it again, and the least of its plan that breaks the same. */
export async function explain({ seed, broken }: SeedReport, least = true): Promise<string> {
  const name = `${broken[0]!.split(":")[0]!}:`;
  const plan = planOf(seed);
  const still = async (fewer: Plan): Promise<boolean> =>
    (await playAndJudge(fewer)).broken.some((other) => other.startsWith(name));
  const part = least ? await minimise(plan, still) : plan;
  const lines = describePlan(part).map((line) => `  ${line}`);
  const again = `  npm run sim -- --seed ${seed}`;
  return [`seed ${seed}`, ...broken.slice(0, 5), "to play it again:", again, "what it takes:", ...lines].join("\n");
}

interface Played {
  /** undefined: it could not be played to its end. */
  readonly evidence: Evidence | undefined;
  readonly broken: string[];
  readonly judged: Counts;
}

async function playAndJudge(plan: Plan, fresh = false): Promise<Played> {
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

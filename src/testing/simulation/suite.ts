import { createHash } from "node:crypto";
import { coverageMarks, marksOf } from "./coverage.ts";
import type { Evidence } from "./evidence.ts";
import { brokenInvariants } from "./invariants/index.ts";
import { describeFault, type Plan, planOf } from "./plan.ts";
import { simulate } from "./simulate.ts";

export interface SeedReport {
  readonly seed: number | string;
  readonly broken: readonly string[];
  readonly marks: readonly string[];
  readonly events: number;
  readonly virtualMs: number;
}

export interface SuiteReport {
  readonly seeds: number;
  /** Each failing seed in words, with the faults that it needs. */
  readonly failures: readonly string[];
  /** How many seeds reached each mark. */
  readonly coverage: Readonly<Record<string, number>>;
  readonly events: number;
  readonly virtualMs: number;
}

/** One seed, once or twice: the same seed must write the same feed. */
export async function simulateSeed(seed: number | string, twice = false): Promise<SeedReport> {
  const plan = planOf(seed);
  const { evidence, broken } = await judged(plan);
  if (twice && evidence !== undefined) {
    const again = await judged(plan);
    if (again.evidence === undefined || feedHash(again.evidence) !== feedHash(evidence)) {
      broken.push("determinism: the same seed wrote another feed");
    }
  }
  const { events = 0, virtualMs = 0 } = evidence ?? {};
  return { seed, broken, marks: evidence === undefined ? [] : marksOf(evidence), events, virtualMs };
}

/** Many seeds, and what they reached together. */
export async function simulateSeeds(
  seeds: Iterable<number | string>,
  onSeed: (report: SeedReport) => void = () => {},
): Promise<SuiteReport> {
  const coverage = Object.fromEntries(Object.keys(coverageMarks).map((mark) => [mark, 0]));
  const failures: string[] = [];
  let count = 0;
  let events = 0;
  let virtualMs = 0;
  for (const seed of seeds) {
    const report = await simulateSeed(seed, count++ % 50 === 0);
    events += report.events;
    virtualMs += report.virtualMs;
    for (const mark of report.marks) coverage[mark]!++;
    if (report.broken.length > 0) failures.push(await explain(seed, report.broken));
    onSeed(report);
  }
  return { seeds: count, failures, coverage, events, virtualMs };
}

/** The seed, what broke, and the fewest of its faults that break the same. */
async function explain(seed: number | string, broken: readonly string[]): Promise<string> {
  const name = broken[0]!.split(":")[0]!;
  let plan = planOf(seed);
  for (const fault of plan.faults) {
    const fewer = { ...plan, faults: plan.faults.filter((other) => other !== fault) };
    const still = await judged(fewer);
    if (still.broken.some((other) => other.startsWith(`${name}:`))) plan = fewer;
  }
  const faults = plan.faults.map((fault) => `  ${describeFault(fault)}`);
  const shape = `${plan.replicas} replicas, TTL ${plan.ttlMs}, travel ${plan.travelMs}, deafness ${plan.deafness}`;
  return [`seed ${seed} (${shape})`, ...broken.slice(0, 5), `with ${faults.length} faults:`, ...faults].join("\n");
}

async function judged(plan: Plan): Promise<{ evidence: Evidence | undefined; broken: string[] }> {
  try {
    const evidence = await simulate(plan);
    return { evidence, broken: brokenInvariants(evidence) };
  } catch (error) {
    return { evidence: undefined, broken: [`thrown: ${(error as Error).stack ?? String(error)}`] };
  }
}

function feedHash({ feed, world }: Evidence): string {
  const text = JSON.stringify([feed, world], (_key, value: unknown) =>
    typeof value === "bigint" ? `${value}` : value,
  );
  return createHash("sha256").update(text).digest("hex");
}

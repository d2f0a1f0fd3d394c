import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { chartFile, charts, drawChart, pageFile, readResults, resultsFile } from "../../bench/charts.ts";
import { planOf } from "../../bench/peers/peers.ts";
import { atMostOf, duplicatesOf, figuresOf, type Round, ratiosOf } from "../../bench/peers/results.ts";
import { systemNames } from "../../bench/peers/system.ts";
import { withTable } from "../../bench/peers/table.ts";

const root = join(import.meta.dirname, "../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");
const results = readResults(join(root, resultsFile));

describe("docs/benchmarks.md says what bench/results/peers.json holds", () => {
  it("in its table", () => {
    expect(read(pageFile)).toBe(withTable(read(pageFile), results));
  });

  it.each(charts.map((chart) => [chart.name, chart] as const))("in its picture %s", (_, chart) => {
    expect(read(chartFile(chart))).toBe(drawChart(chart, results));
    expect(read(pageFile)).toContain(`images/bench-${chart.name}.svg`);
  });

  it("and its figures follow from its rounds", () => {
    expect(results.rounds.length).toBeGreaterThan(0);
    for (const name of systemNames)
      if (results.systems[name] !== undefined)
        expect(results.systems[name]).toEqual(figuresOf(results.rounds.filter(({ system }) => system === name)));
    expect(results.ratios).toEqual(ratiosOf(results.systems));
    expect(results.atMost).toEqual(atMostOf(results.systems));
    expect(results.duplicates).toEqual(duplicatesOf(results.rounds));
  });

  it("and Tape wired nothing twice", () => {
    const ours = [
      results.duplicates["tape-sqlite"],
      results.duplicates["tape-postgres"],
      results.duplicates["tape-remote"],
    ];
    expect(ours).toEqual([0, 0, 0]);
  });
});

describe("ratios", () => {
  const speed = (system: Round["system"], round: number, stepsPerSecond: number): Round => ({
    system,
    round,
    steps: { 128: { stepsPerSecond } },
  });

  it("stand beside what the disk would allow, where one run at a time waits for it", () => {
    const systems = {
      "tape-sqlite": { steps1: 2_000, floor1: 6_000 },
      "tape-postgres": { steps1: 500 },
      restate: { steps1: 500 },
      dbos: { steps1: 100 },
    };
    expect(atMostOf(systems)).toEqual({ steps1Sqlite: 10, steps1Postgres: null });
  });

  it("are ours by the best peer, those on PostgreSQL among themselves", () => {
    const ratios = ratiosOf({
      "tape-sqlite": { steps128: 3_000, timersP99Ms: 10, recoveryMs: 9_000, recoveryFromExpiryMs: 500 },
      "tape-postgres": { steps128: 1_000 },
      restate: { steps128: 300, timersP99Ms: 100, recoveryMs: 1_000 },
      dbos: { steps128: 100, timersP99Ms: 50, recoveryMs: 4_000 },
    });
    expect(ratios).toEqual({
      steps128Sqlite: 10,
      steps1Sqlite: null,
      steps128Postgres: 10,
      steps1Postgres: null,
      shortRuns: null,
      timersP99: 0.2,
      recoveryTime: 0.5,
      install: null,
    });
  });

  it("stand on medians, and a wild round moves nothing", () => {
    const rounds = [speed("dbos", 0, 100), speed("dbos", 1, 9_999), speed("dbos", 2, 110)];
    expect(figuresOf(rounds)).toEqual({ steps128: 110 });
  });

  it("duplicates are summed, not averaged away", () => {
    const killed = (wiresTwice: number): Round => ({
      system: "tape-sqlite",
      round: 0,
      recovery: { runs: 200, finished: 200, stepsTwice: wiresTwice, wiresTwice },
    });
    expect(duplicatesOf([killed(0), killed(1), killed(0)])).toEqual({ "tape-sqlite": 1 });
  });
});

it("an unknown system or part is refused", () => {
  expect(planOf(["--only", "restate,dbos", "--rounds", "2"])).toMatchObject({ only: ["restate", "dbos"], rounds: 2 });
  expect(() => planOf(["--only", "temporal"])).toThrow("temporal");
  expect(() => planOf(["--parts", "speeds"])).toThrow("speeds");
});

import { strict as assert } from "node:assert";
import { describe, it } from "vitest";
import { neverJudged, neverReached, simulateSeeds } from "../../simulation/suite.ts";
import { sampleDay } from "../sample.ts";
import { cover } from "./find-cover.ts";

/** Seeds that once found a bug, in the engine or in the simulation. */
const regressions: readonly string[] = [
  "7928",
  "113219",
  "400988",
  "404778",
  "416100",
  "426514",
  "431753",
  "728388",
  "20773028472",
  "11936", // a replica that could set no alarm kept a run whose effect was under way
  "19897", // a dead replica without a shard left, and what none had wanted was kept for a minute
];

/**
 * The first file has the seeds of cover.json, which reach every mark and judge by every invariant. The others need not
 * prove that again: of theirs, more are new every day. `npm run sim` simulates any number of new ones.
 */
const sizes = [
  { fixed: 40, fresh: 50, reachesAll: true },
  { fixed: 60, fresh: 80, reachesAll: false },
  { fixed: 60, fresh: 80, reachesAll: false },
] as const;
/** Fixed seeds of a file begin at a multiple of this. */
const room = 480;

/**
 * The seeds of one test file: fixed ones, equal on every machine, and some that are new every day. A fresh seed is
 * named by its day, so that a failure can be repeated.
 */
export function seedsOf(file: number): (number | string)[] {
  const { fixed, fresh, reachesAll } = sizes[file - 1]!;
  const first = (file - 1) * room + 1;
  return [
    ...(reachesAll ? regressions : []),
    ...new Set([...Array.from({ length: fixed }, (_, k) => first + k), ...(reachesAll ? cover() : [])]),
    ...Array.from({ length: fresh }, (_, k) => `${sampleDay} ${file}.${k}`),
  ];
}

export function runSeeds(file: number): void {
  describe(`the engine, simulated (${file} of 3)`, () => {
    const { reachesAll } = sizes[file - 1]!;
    const title = reachesAll ? "keeps every invariant and reaches every mark" : "keeps every invariant";
    it(title, { timeout: 600_000 }, async () => {
      const seeds = seedsOf(file);
      const report = await simulateSeeds(seeds);
      assert.equal(report.failures.join("\n\n"), "");
      assert.equal(report.seeds, seeds.length);
      if (!reachesAll) return;
      assert.deepEqual(neverReached(report), [], "marks never reached");
      assert.deepEqual(neverJudged(report), [], "invariants that judged nothing");
    });
  });
}

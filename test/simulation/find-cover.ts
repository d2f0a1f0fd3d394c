// `node test/simulation/find-cover.ts [SEEDS]` simulates the first seeds, by default 1,500, and writes to
// cover.json a small set that reaches every mark and judges by every invariant. A change of the plans moves what a
// seed does: run it again when the suite reports marks that are never reached.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { coverageMarks } from "../../simulation/coverage.ts";
import { invariants } from "../../simulation/invariants/index.ts";
import { simulateSeed } from "../../simulation/suite.ts";

const file = join(import.meta.dirname, "cover.json");

/** Reached this often, a mark is still reached when a change moves one of its seeds. */
const times = 2;

/** Seeds that together reach every mark and judge by every invariant, most of them twice. */
export const cover = (): readonly number[] => JSON.parse(readFileSync(file, "utf8"));

/** The seeds that reach most of what is missing, one after the other, until nothing more is gained. */
export function smallCover(reached: ReadonlyMap<number, readonly string[]>, wanted: readonly string[]): number[] {
  const missing = new Map(wanted.map((name) => [name, times]));
  const left = new Map(reached);
  const chosen: number[] = [];
  for (;;) {
    const gains = [...left].map(([seed, names]) => [seed, names.filter((name) => missing.has(name)).length] as const);
    const [seed, gain] = gains.reduce((best, next) => (next[1] > best[1] ? next : best), [0, 0] as const);
    if (gain === 0) return chosen.sort((a, b) => a - b);
    chosen.push(seed);
    for (const name of left.get(seed)!) {
      const open = missing.get(name);
      if (open === 1) missing.delete(name);
      else if (open !== undefined) missing.set(name, open - 1);
    }
    left.delete(seed);
  }
}

async function findCover(seeds: number): Promise<void> {
  const reached = new Map<number, readonly string[]>();
  for (let seed = 1; seed <= seeds; seed++) {
    const { marks, judged } = await simulateSeed(seed);
    reached.set(seed, [...marks, ...Object.keys(judged).filter((name) => judged[name]! > 0)]);
  }
  const wanted = [...Object.keys(coverageMarks), ...Object.keys(invariants)];
  const all = new Set([...reached.values()].flat());
  for (const name of wanted) if (!all.has(name)) console.error(`${name}: not reached within ${seeds} seeds`);
  const chosen = smallCover(reached, wanted);
  console.log(`${chosen.length} seeds reach ${wanted.filter((name) => all.has(name)).length} of ${wanted.length}`);
  writeFileSync(file, `${JSON.stringify(chosen)}\n`);
}

if (import.meta.main) await findCover(Number(process.argv[2] ?? 1_500));

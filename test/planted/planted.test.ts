import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { invariants } from "../../simulation/invariants/index.ts";
import { seedsOf } from "../simulation/seeds.ts";
import type { Bug } from "./bug.ts";
import { bugs } from "./bugs/index.ts";
import { lastFound, promised } from "./find-seeds.ts";
import { PatchedCopy } from "./patched-copy.ts";
import { type Broken, invariantOf, type SeedResult } from "./seed-runner.ts";

/** Processes at a time. */
const jobs = 2;
const timeout = 600_000;

describe("planted bugs", () => {
  const before = lastFound();
  const copies: PatchedCopy[] = [];
  let waiting: (readonly [Bug, PromiseWithResolvers<SeedResult>])[] = [];
  const searches = new Map<Bug, PromiseWithResolvers<SeedResult>>(
    bugs.map((bug) => [bug, Promise.withResolvers<SeedResult>()]),
  );
  const found = new Map<string, Broken>();

  beforeAll(() => {
    waiting = [...searches];
    const work = async (copy: PatchedCopy): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const [{ name, patches, detectedBy, kind, within }, { resolve, reject, promise }] = next;
        promise.catch(() => {}); // its own test reports it
        const seeds = promised.slice(0, within);
        // The seed that detected the bug before comes first: it usually does so again, which saves all others.
        const first = seeds.filter((seed) => seed === before[name]);
        await copy.run(patches, { seeds: [...first, ...seeds], detectedBy, kind }).then(resolve, reject);
      }
    };
    for (let k = 0; k < jobs; k++) {
      const copy = new PatchedCopy();
      copies.push(copy);
      void work(copy);
    }
  });

  afterAll(() => {
    waiting = [];
    for (const copy of copies) copy.close();
  });

  it("are at least 18, each with invariants that exist", () => {
    expect(bugs.length).toBeGreaterThanOrEqual(18);
    const names = bugs.map(({ name }) => name);
    expect(new Set(names).size).toBe(bugs.length);
    expect(names).toEqual(expect.arrayContaining(Object.keys(before)));
    const known = Object.keys(invariants);
    for (const { name, detectedBy, patches } of bugs) {
      expect(known, name).toEqual(expect.arrayContaining([...detectedBy]));
      expect([detectedBy.length, patches.length], name).not.toContain(0);
    }
  });

  it.each(bugs.map((bug) => [bug.name, bug] as const))("%s", { timeout }, async (_name, bug) => {
    const result = await searches.get(bug)!.promise;
    const others = result.others.map(({ seed, broken }) => `seed ${seed}: ${broken[0]}`).slice(0, 5);
    expect(
      result.found?.broken.map(invariantOf),
      `none of its invariants broke within ${bug.within} seeds; others did: ${others.join("\n")}`,
    ).toEqual(expect.arrayContaining([expect.toSatisfy((invariant) => bug.detectedBy.includes(invariant as string))]));
    found.set(bug.name, result.found!);
  });

  it("break nothing in the same seeds once removed", { timeout }, async () => {
    const where = [...new Set([...found.values()].map(({ seed }) => seed))];
    expect(where.length).toBeGreaterThan(0);
    // The first file of seeds simulates most of them without any bug. Here the copy itself is tested, and the others.
    const elsewhere = new Set(seedsOf(1));
    const own = where.filter((seed, k) => k < 5 || !elsewhere.has(seed));
    expect(await copies[0]!.run([], { seeds: own, detectedBy: [] })).toEqual({ others: [] });
    const moved = [...found].filter(([name, { seed }]) => seed !== before[name]).map(([name]) => name);
    if (moved.length > 0)
      console.log(`detected by other seeds than before (run node test/planted/find-seeds.ts): ${moved.join("; ")}`);
  });
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { invariants } from "../../simulation/invariants/index.ts";
import type { Bug } from "./bug.ts";
import { bugs } from "./bugs/index.ts";
import { lastFound, promised } from "./hunt.ts";
import { type Broken, type Played, tellerOf } from "./player.ts";
import { Workshop } from "./workshop.ts";

/** Of processes at a time. */
const jobs = 2;
const timeout = 600_000;

describe("planted bugs", () => {
  const before = lastFound();
  const shops: Workshop[] = [];
  let waiting: (readonly [Bug, PromiseWithResolvers<Played>])[] = [];
  const hunts = new Map<Bug, PromiseWithResolvers<Played>>(bugs.map((bug) => [bug, Promise.withResolvers<Played>()]));
  const found = new Map<string, Broken>();

  beforeAll(() => {
    waiting = [...hunts];
    const work = async (shop: Workshop): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const [{ name, patches, tellers, kind, within }, { resolve, reject, promise }] = next;
        promise.catch(() => {}); // told by its own test
        const seeds = promised.slice(0, within);
        // First where it was found before: as a rule it is still there, and all others need not be played.
        const first = seeds.filter((seed) => seed === before[name]);
        await shop.play(patches, { seeds: [...first, ...seeds], tellers, kind }).then(resolve, reject);
      }
    };
    for (let k = 0; k < jobs; k++) {
      const shop = new Workshop();
      shops.push(shop);
      void work(shop);
    }
  });

  afterAll(() => {
    waiting = [];
    for (const shop of shops) shop.close();
  });

  it("are many, and each is told of by checkers that exist", () => {
    expect(bugs.length).toBeGreaterThanOrEqual(18);
    const names = bugs.map(({ name }) => name);
    expect(new Set(names).size).toBe(bugs.length);
    expect(names).toEqual(expect.arrayContaining(Object.keys(before)));
    const known = Object.keys(invariants);
    for (const { name, tellers, patches } of bugs) {
      expect(known, name).toEqual(expect.arrayContaining([...tellers]));
      expect([tellers.length, patches.length], name).not.toContain(0);
    }
  });

  it.each(bugs.map((bug) => [bug.name, bug] as const))("%s", { timeout }, async (_name, bug) => {
    const played = await hunts.get(bug)!.promise;
    const others = played.besides.map(({ seed, broken }) => `seed ${seed}: ${broken[0]}`).slice(0, 5);
    expect(
      played.found?.broken.map(tellerOf),
      `none of its tellers in ${bug.within} seeds; instead: ${others.join("\n")}`,
    ).toEqual(expect.arrayContaining([expect.toSatisfy((teller) => bug.tellers.includes(teller as string))]));
    found.set(bug.name, played.found!);
  });

  it("and nothing is broken in the same seeds without them", { timeout }, async () => {
    const where = [...new Set([...found.values()].map(({ seed }) => seed))];
    expect(where.length).toBeGreaterThan(0);
    expect(await shops[0]!.play([], { seeds: where, tellers: [] })).toEqual({ besides: [] });
    const moved = [...found].filter(([name, { seed }]) => seed !== before[name]).map(([name]) => name);
    if (moved.length > 0) console.log(`found elsewhere than before (node test/planted/hunt.ts): ${moved.join("; ")}`);
  });
});

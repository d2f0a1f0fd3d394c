import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { invariants } from "../../src/testing/simulation/invariants/index.ts";
import type { Bug } from "./bug.ts";
import { bugs } from "./bugs/index.ts";
import { type Broken, type Played, tellerOf } from "./player.ts";
import { Workshop } from "./workshop.ts";

/** The promise: every bug is found in one of these, played in this order. */
const seeds = Array.from({ length: 500 }, (_, k) => k + 1);
/** Of processes at a time. */
const jobs = 2;
const timeout = 600_000;

describe("planted bugs", () => {
  const shops: Workshop[] = [];
  let waiting: (readonly [Bug, PromiseWithResolvers<Played>])[] = [];
  const hunts = new Map<Bug, PromiseWithResolvers<Played>>(bugs.map((bug) => [bug, Promise.withResolvers<Played>()]));
  const found: Broken[] = [];

  beforeAll(() => {
    waiting = [...hunts];
    const work = async (shop: Workshop): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const [{ patches, tellers, kind, within }, { resolve, reject, promise }] = next;
        promise.catch(() => {}); // told by its own test
        await shop.play(patches, { seeds: seeds.slice(0, within), tellers, kind }).then(resolve, reject);
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
    expect(new Set(bugs.map(({ name }) => name)).size).toBe(bugs.length);
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
    found.push(played.found!);
  });

  it("and nothing is broken in the same seeds without them", { timeout }, async () => {
    const where = [...new Set(found.map(({ seed }) => seed))];
    expect(where.length).toBeGreaterThan(0);
    expect(await shops[0]!.play([], { seeds: where, tellers: [] })).toEqual({ besides: [] });
  });
});

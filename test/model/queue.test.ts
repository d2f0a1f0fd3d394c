import { describe, expect, it } from "vitest";
import { effectiveLimits, mergedChange, type RateLimit, weightOf } from "../../src/model/queue.ts";
import {
  type Contender,
  paceOf,
  rateAfter,
  rateNextAt,
  rateRoom,
  shareOut,
  virtualTimeAfter,
} from "../../src/model/queue-turns.ts";

/** Starts as many as the rate allows, at every time of the list. */
function starts(rate: RateLimit, times: readonly number[]): number[] {
  const rule = paceOf(rate);
  let tat = 0;
  return times.flatMap((now) => {
    const room = rateRoom(tat, now, rule);
    tat = rateAfter(tat, now, rule, room);
    return Array<number>(room).fill(now);
  });
}

/** The largest number of starts in any half-open window of `perMs`. */
function densest(at: readonly number[], perMs: number): number {
  let densestYet = 0;
  for (let from = 0, to = 0; to < at.length; to++) {
    while (at[from]! + perMs <= at[to]!) from++;
    densestYet = Math.max(densestYet, to - from + 1);
  }
  return densestYet;
}

describe("the rate of a queue", () => {
  const everyMs = Array.from({ length: 5_000 }, (_, k) => 1_000 + k);

  it.each([
    { limit: 10, perMs: 1_000, burst: 1 },
    { limit: 10, perMs: 1_000, burst: 4 },
    { limit: 7, perMs: 300, burst: 3 },
    { limit: 700, perMs: 1_000, burst: 5 },
  ])("allows limit + burst - 1 starts in any window: %j", (rule) => {
    const at = starts(rule, everyMs);
    expect(densest(at, rule.perMs)).toBeLessThanOrEqual(rule.limit + rule.burst - 1);
    expect(at.length / (everyMs.length / rule.perMs)).toBeGreaterThan(rule.limit * 0.95); // it is used, too
  });

  it("is unlimited without a rule", () => {
    expect(rateRoom(5, 1, undefined)).toBe(Number.POSITIVE_INFINITY);
    expect(rateAfter(5, 1, undefined, 3)).toBe(5);
    expect(rateNextAt(5, 1, undefined)).toBeUndefined();
  });

  it("names the time of the next start to the millisecond", () => {
    const rule = paceOf({ limit: 3, perMs: 1_000, burst: 2 });
    const tat = rateAfter(0, 5_000, rule, rateRoom(0, 5_000, rule));
    const next = rateNextAt(tat, 5_000, rule)!;
    expect(rateRoom(tat, next - 1, rule)).toBe(0);
    expect(rateRoom(tat, next, rule)).toBe(1);
  });

  it("waits no longer than its burst after a clock was set back", () => {
    const rule = paceOf({ limit: 1, perMs: 1_000, burst: 2 });
    const tat = rateAfter(0, 1_000_000, rule, 2);
    expect(rateNextAt(tat, 5_000, rule)).toBeLessThanOrEqual(5_000 + 2_000);
  });

  it("rounds the interval up, so that rounding allows nothing more", () => {
    expect(paceOf({ limit: 3, perMs: 1, burst: 1 })).toEqual({ intervalUs: 334, burst: 1 });
  });
});

describe("the turns of a queue", () => {
  const one = (key: string, more: Partial<Contender> = {}): Contender => ({
    ...{ key, class: 5, vtime: 0, entered: 0, weight: 1_000, ready: 100 },
    ...more,
  });
  const shares = (contenders: readonly Contender[], free: number) => Object.fromEntries(shareOut(contenders, free));

  it("are equal for equal keys", () => {
    expect(shares([one("a"), one("b"), one("c")], 9)).toEqual({ a: 3, b: 3, c: 3 });
  });

  it("follow the weights", () => {
    expect(shares([one("a", { weight: 3_000 }), one("b")], 8)).toEqual({ a: 6, b: 2 });
  });

  it("give the rest to keys that have more, if others have too little", () => {
    expect(shares([one("a", { ready: 1 }), one("b")], 6)).toEqual({ a: 1, b: 5 });
    expect(shares([one("a", { ready: 1 }), one("b", { ready: 0 })], 6)).toEqual({ a: 1 });
  });

  it("serve a lower class entirely before a higher one", () => {
    expect(shares([one("a", { class: 1, vtime: 9e9, ready: 4 }), one("b")], 5)).toEqual({ a: 4, b: 1 });
  });

  it("serve first the key that got least", () => {
    expect(shares([one("a", { vtime: virtualTimeAfter(0, 1_000, 2) }), one("b")], 2)).toEqual({ b: 2 });
  });

  it("of new keys come in the order of their arrival, whatever their names", () => {
    expect(shares([one("a", { entered: 2 }), one("z", { entered: 1 })], 1)).toEqual({ z: 1 });
  });

  it("are spread over rounds as over one", () => {
    const vtimes = new Map([
      ["a", 0],
      ["b", 0],
    ]);
    const total = new Map<string, number>();
    for (let round = 0; round < 40; round++) {
      for (const [key, n] of shareOut(
        [one("a", { vtime: vtimes.get("a")! }), one("b", { vtime: vtimes.get("b")! })],
        3,
      )) {
        vtimes.set(key, virtualTimeAfter(vtimes.get(key)!, 1_000, n));
        total.set(key, (total.get(key) ?? 0) + n);
      }
    }
    expect([total.get("a"), total.get("b")]).toEqual([60, 60]);
  });
});

describe("the limits of a queue", () => {
  const rate = { limit: 1, perMs: 1_000, burst: 1 };

  it("are those of the definition until an operator changes them", () => {
    const spec = { concurrency: 5, perKey: { concurrency: 2, rate } };
    expect(effectiveLimits(spec, undefined)).toEqual(spec);
    expect(effectiveLimits(spec, { concurrency: 1, perKey: { rate: null } })).toEqual({
      concurrency: 1,
      perKey: { concurrency: 2 },
    });
    expect(effectiveLimits(spec, { concurrency: null, perKey: { concurrency: null, rate: null } })).toEqual({});
  });

  it("keep an earlier change that a later one does not mention", () => {
    expect(mergedChange({ concurrency: 1, perKey: { concurrency: 3 } }, { rate, perKey: { rate: null } })).toEqual({
      concurrency: 1,
      rate,
      perKey: { concurrency: 3, rate: null },
    });
  });

  it.each([0, -1, Number.NaN, 0.0001, 1_001])("refuse the weight %d", (weight) => {
    expect(weightOf(weight)).toBeUndefined();
  });
});

import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { cycleOf, type WaitingRun } from "../../src/model/queue-cycle.ts";

const random = seededRandom("cycles");
const under = (n: number): number => random.int(n);

const slotOf = (
  queue: number,
  key: number,
  state: string,
  concurrency: number | null,
  keyConcurrency: number | null,
) => ({
  ...{ queue: `q${queue}`, key: `k${key}`, state, concurrency, keyConcurrency },
});

/** A few runs with a slot, each with a child that usually waits for one; the limits of each queue are met exactly. */
function drawn(): WaitingRun[] {
  const places = Array.from({ length: 1 + under(5) }, (_, k) => {
    const [queue, key, moves] = [under(3), under(2), under(12) === 0];
    const child = under(6) === 0 ? undefined : { queue: under(3), key: under(2), state: "QUEUED" };
    const parent = k > 0 && under(4) === 0 ? 2 * under(k) : null;
    return [
      { parent, slot: { queue, key, state: under(5) === 0 ? "QUEUED" : "HELD" }, moves },
      { parent: 2 * k, slot: child, moves: child === undefined },
    ];
  }).flat();
  const limited = [0, 1, 2].map(() => under(3));
  return places.map(({ parent, slot, moves }, journal) => {
    const base = { id: `r${journal}`, journal, parent, moves };
    if (slot === undefined) return base;
    const held = places.filter((one) => one.slot?.state === "HELD" && one.slot.queue === slot.queue);
    const ofKey = held.filter((one) => one.slot!.key === slot.key);
    const concurrency = limited[slot.queue] === 0 ? null : Math.max(1, held.length);
    const keyConcurrency = limited[slot.queue] === 1 ? null : Math.max(1, ofKey.length);
    return { ...base, slot: slotOf(slot.queue, slot.key, slot.state, concurrency, keyConcurrency) };
  });
}

/** Lets every run that can continue end, until none can; returns those that are left. */
function leftOver(runs: readonly WaitingRun[]): Set<number> {
  const left = new Set(runs.map(({ journal }) => journal));
  const canContinue = ({ journal, moves, slot }: WaitingRun): boolean => {
    if (moves) return true;
    if (slot?.state !== "QUEUED") {
      const children = runs.filter(({ parent }) => parent === journal);
      return children.length === 0 || children.some((child) => !left.has(child.journal));
    }
    const held = runs.filter(
      (one) => one.slot?.state === "HELD" && one.slot.queue === slot.queue && left.has(one.journal),
    );
    const ofKey = held.filter((one) => one.slot!.key === slot.key);
    return (
      (slot.concurrency === null || held.length < slot.concurrency) &&
      (slot.keyConcurrency === null || ofKey.length < slot.keyConcurrency)
    );
  };
  for (let before = -1; before !== left.size; ) {
    before = left.size;
    for (const run of runs) if (left.has(run.journal) && canContinue(run)) left.delete(run.journal);
  }
  return left;
}

describe("cycles of queues", () => {
  it("keep exactly the runs waiting that no order of endings lets continue", () => {
    const found = { waiting: 0, moving: 0, long: 0 };
    for (let n = 0; n < 3_000; n++) {
      const runs = drawn();
      const left = leftOver(runs);
      for (const { journal } of runs) {
        const cycle = cycleOf(runs, journal);
        expect([journal, cycle !== undefined], JSON.stringify(runs)).toEqual([journal, left.has(journal)]);
        found[cycle === undefined ? "moving" : "waiting"]++;
        if ((cycle?.length ?? 0) > 1) found.long++;
        for (const { run, queue, holder } of cycle ?? []) {
          const of = (id: string) => runs.find((one) => one.id === id)!;
          expect(of(run).slot).toMatchObject({ queue, state: "QUEUED" });
          expect(of(holder).slot).toMatchObject({ queue, state: "HELD" });
        }
      }
    }
    expect(Math.min(...Object.values(found))).toBeGreaterThan(100);
  });

  it("start with their oldest queued run, wherever they are entered", () => {
    const runs: WaitingRun[] = [
      { id: "a", journal: 1, parent: null, moves: false, slot: slotOf(1, 0, "HELD", 1, null) },
      { id: "b", journal: 2, parent: null, moves: false, slot: slotOf(2, 0, "HELD", 1, null) },
      { id: "b.0", journal: 3, parent: 2, moves: false, slot: slotOf(1, 0, "QUEUED", 1, null) },
      { id: "a.0", journal: 4, parent: 1, moves: false, slot: slotOf(2, 0, "QUEUED", 1, null) },
    ];
    const steps = [
      { run: "b.0", queue: "q1", key: "k0", holder: "a" },
      { run: "a.0", queue: "q2", key: "k0", holder: "b" },
    ];
    for (const { journal } of runs) expect(cycleOf(runs, journal)).toEqual(steps);
    const free = runs.map((run) => (run.id === "a" ? { ...run, moves: true } : run));
    for (const { journal } of free) expect(cycleOf(free, journal)).toBeUndefined();
  });
});

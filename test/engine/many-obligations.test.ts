import { describe, expect } from "vitest";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { onBothStores } from "../kit/both-stores.ts";

const pageRows = 10;
const both = onBothStores({ pageRows });

/** A booking whose compensation gets no response and cannot be observed, so that it needs an operator. */
function stuckSaga() {
  const book = effect("book", (_: string) => "booked", { compensate: () => Promise.reject(new Error("no answer")) });
  const fails = workflow("fails", async (_tape, key: string) => {
    await book(key);
    throw new Error("on purpose");
  });
  return { book, fails };
}

describe("more obligations than one page", () => {
  both("each run with a STUCK obligation is STUCK, and its result rejects", async (open) => {
    const { book, fails } = stuckSaga();
    const t = await open(createRunner({ workflows: [fails], effects: [book] }));
    const runs = [];
    for (let k = 0; k < 2 * pageRows + 5; k++) runs.push(await t.start(fails, `k${k}`, { id: `r${k}` }));
    for (const run of runs) {
      await expect(t.time.during(run.result())).rejects.toMatchObject({ code: "TAPE_RUN_STUCK" });
      expect(await t.time.during(run.status())).toBe("STUCK");
    }
  });

  both("a run that completes during a compensation stays parked until that is done", async (open) => {
    const { book, fails } = stuckSaga();
    let finish = () => {};
    const slow = effect("slow", () => "done", { compensate: () => new Promise<void>((resolve) => (finish = resolve)) });
    const ends = workflow("ends", async (tape) => {
      await slow(null);
      await tape.sleep("10s");
      return "well";
    });
    const t = await open(createRunner({ workflows: [fails, ends], effects: [book, slow] }));
    for (let k = 0; k < 2 * pageRows; k++) await t.start(fails, `k${k}`, { id: `r${k}` });
    await t.settle();
    const run = await t.start(ends, undefined, { id: "ends" });
    await t.elapse(500);
    const resolution = { as: "compensate" } as const;
    await t.time.during(t.tape.resolve({ run: "ends", pos: 0, resolution, by: "ada", reason: "a test" }));
    await t.elapse(15_000);
    const before = (await t.time.during(t.store.read.journal("default", { run: "ends" }))).length;
    await t.elapse(10_000);
    const after = (await t.time.during(t.store.read.journal("default", { run: "ends" }))).length;
    expect(await t.time.during(run.status())).toBe("ENDING");
    expect(after).toBe(before);
    finish();
    expect(await t.result(run)).toBe("well");
  });

  both("a run with more effects than a page waits for the last of them", async (open) => {
    let settle = (_: string) => {};
    const quick = effect("quick", (n: number) => n, { semantics: "idempotent" });
    const last = effect("last", () => new Promise<string>((resolve) => (settle = resolve)), {
      semantics: "idempotent",
      dispatch: "outbox",
    });
    const many = workflow("many", async (tape) => {
      for (let n = 0; n < pageRows + 2; n++) await quick(n);
      return tape.race([last(null), tape.sleep("1s").then(() => "without it")]);
    });
    const t = await open(createRunner({ workflows: [many], effects: [quick, last] }));
    const run = await t.start(many, undefined, { id: "many" });
    await t.elapse(5_000);
    const before = (await t.time.during(t.store.read.journal("default", { run: "many" }))).length;
    await t.elapse(5_000);
    expect((await t.time.during(t.store.read.journal("default", { run: "many" }))).length).toBe(before);
    settle("late");
    expect(await t.result(run)).toBe("without it");
  });

  both("a fork plan lists its last compensated child, however many obligations the others had", async (open) => {
    const book = effect("book", (_: number) => "booked", { compensate: () => {}, semantics: "idempotent" });
    const inner = workflow("inner", async (_tape, bookings: number) => {
      for (let n = 0; n < bookings; n++) await book(n);
    });
    // The first child fills more than a page; those of the next two cross the end of a page.
    const bookings = [pageRows + 2, pageRows - 3, 6, 1];
    const parent = workflow("parent", async (tape) => {
      for (const count of bookings) await (await tape.spawn(inner, count)).result();
      throw new Error("on purpose");
    });
    const t = await open(createRunner({ workflows: [parent, inner], effects: [book] }));
    const run = await t.start(parent, undefined, { id: "parent" });
    await t.settle();
    expect(await t.time.during(run.status())).toBe("COMPENSATED");
    const { compensated } = await t.time.during(t.tape.forkPlan("parent"));
    expect(compensated.map(({ what, obligation }) => [what, obligation])).toEqual(
      bookings.map(() => ["child", "COMPENSATED"]),
    );
  });

  both("an operator resolves an effect far behind the first page", async (open) => {
    const quick = effect("quick", (n: number) => n, { semantics: "idempotent" });
    const blind = effect("blind", () => Promise.reject(new Error("no answer")), { allowUnsafe: "a test" });
    const many = workflow("many", async () => {
      for (let n = 0; n < 2 * pageRows; n++) await quick(n);
      return blind(null);
    });
    const t = await open(createRunner({ workflows: [many], effects: [quick, blind] }));
    const run = await t.start(many, undefined, { id: "many" });
    await t.settle();
    const resolution = { as: "confirmed", value: "seen" } as const;
    await t.time.during(
      t.tape.resolve({ run: "many", pos: 2 * pageRows, resolution, by: "ada", reason: "it is at the bank" }),
    );
    expect(await t.result(run)).toBe("seen");
  });
});

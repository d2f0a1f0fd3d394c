import { describe, expect, it } from "vitest";
import { TapeError } from "../../src/model/errors.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { effect } from "../../src/sdk/effect.ts";
import { type AnyWorkflow, createRunner, workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { onBothStores } from "../kit/both-stores.ts";
import { stage, tenant } from "./stage.ts";

const pageRows = 10;
const both = onBothStores({ pageRows });

/** A booking that cannot be undone without a person: its inverse gets no answer, and nobody can look. */
function stuckSaga() {
  const book = effect("book", (_: string) => "booked", { compensate: () => Promise.reject(new Error("no answer")) });
  const fails = workflow("fails", async (_tape, key: string) => {
    await book(key);
    throw new Error("on purpose");
  });
  return { book, fails };
}

describe("more obligations than one page of the tenant's", () => {
  both("each run whose obligation is STUCK says so, and its result answers", async (open) => {
    const { book, fails } = stuckSaga();
    const t = await open(createRunner({ workflows: [fails], effects: [book] }));
    const runs = [];
    for (let k = 0; k < 2 * pageRows + 5; k++) runs.push(await t.start(fails, `k${k}`, { id: `r${k}` }));
    for (const run of runs) {
      await expect(t.time.during(run.result())).rejects.toMatchObject({ code: "TAPE_RUN_STUCK" });
      expect(await t.time.during(run.status())).toBe("STUCK");
    }
  });

  both("a run that ends well while one of its acts is undone rests until that is over", async (open) => {
    const { book, fails } = stuckSaga();
    let undone = () => {};
    const slow = effect("slow", () => "done", { compensate: () => new Promise<void>((resolve) => (undone = resolve)) });
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
    undone();
    expect(await t.result(run)).toBe("well");
  });

  both("a run with more acts than a page waits for the last of them", async (open) => {
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

  both("a fork sees that what its last child did was undone, however much the others owed", async (open) => {
    const book = effect("book", (_: number) => "booked", { compensate: () => {}, semantics: "idempotent" });
    const inner = workflow("inner", async (_tape, bookings: number) => {
      for (let n = 0; n < bookings; n++) await book(n);
    });
    // The first one's fill a page and more by themselves, those of the next two lie across the end of one.
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

  both("a person resolves an act far behind the first page", async (open) => {
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

describe("a store that keeps a run from ending", () => {
  const flow = (name: string, run: (tape: TapeContext) => unknown): AnyWorkflow =>
    workflow(name, run as never) as unknown as AnyWorkflow;

  /** After so many tries without a rest the test has seen enough. */
  const enough = 200;

  it("is asked again with pauses, and then later", async () => {
    const s = await stage();
    let tries = 0;
    const store: Store = {
      ...s.store,
      fenced: {
        ...s.store.fenced,
        async append(fence, entry) {
          const ends = entry.records.some(({ kind }) => kind === "run.ended");
          if (!ends) return s.store.fenced.append(fence, entry);
          if (++tries > enough) return new Promise<never>(() => {});
          throw new TapeError("TAPE_RUN_UNSETTLED", "something of the run is open");
        },
      },
      onWake: (listener) => s.store.onWake(listener),
    };
    const plain = flow("plain", () => "done");
    const p = s.process([plain], { store });
    const id = await p.start(plain);
    await p.until(() => s.logged.some(({ event }) => event === "run.end_refused"));
    expect(tries).toBeLessThan(20);
    expect(await s.run(id)).toMatchObject({ status: "ENDING" });
    await s.clock.elapse(60_000);
    await p.until(() => tries > 8);
    expect(tries).toBeLessThan(40);
  });

  it("and one that counts notes which it does not hand out is not asked without end", async () => {
    const s = await stage();
    let hidden = true;
    let reads = 0;
    const store: Store = {
      ...s.store,
      read: {
        ...s.store.read,
        async journal(of, target, part) {
          if (part?.inbox !== true || !hidden) return s.store.read.journal(of, target, part);
          return ++reads > enough ? new Promise<never>(() => {}) : [];
        },
      },
      onWake: (listener) => s.store.onWake(listener),
    };
    let go = (): void => {};
    const waits = flow("waits", (tape) => tape.step("long", () => new Promise<void>((resolve) => (go = resolve))));
    const p = s.process([waits], { store });
    const id = await p.start(waits);
    await p.until(async () => (await s.run(id)).status === "RUNNING");
    await s.store.intake.signal(tenant, id, { name: "any", value: 1 });
    go();
    await s.clock.elapse(20_000);
    expect(reads).toBeGreaterThan(1);
    expect(reads).toBeLessThan(40);
    expect((await s.kinds(id)).filter((kind) => kind === "notes.taken")).toEqual([]);
    expect(s.logged.filter(({ event }) => event === "run.notes_missing")).toHaveLength(1);
    hidden = false;
    expect(await p.over(id)).toMatchObject({ status: "COMPLETED" });
  });
});

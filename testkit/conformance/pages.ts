import { strict as assert } from "node:assert";
import type { EffectRow, GateRow } from "../../src/model/rows.ts";
import type { Page, RunFilter } from "../../src/store/contract/store.ts";
import { effectCursor, gateCursor } from "../../src/store/list-cursors.ts";
import { type Cases, heldRun, record, refused, scheduleSpec, spec, step, tenant, unique } from "./frame.ts";
import { begin, ended, type Holder, intent } from "./holder.ts";

const large = "x".repeat(3 * 1024 * 1024);

/** Reads page after page until one is not full. No page may exceed its limit by more than one row. */
async function pagesOf<T>(page: (last: T | undefined) => Promise<Page<T>>): Promise<T[][]> {
  const pages: T[][] = [];
  for (let last: T | undefined; ; ) {
    const some = await page(last);
    pages.push([...some]);
    last = some.at(-1);
    if (some.more !== true) return pages;
    assert.ok(last !== undefined, "a page that was full has a row");
  }
}

const lengths = (pages: readonly (readonly unknown[])[]): number[] => pages.map(({ length }) => length);

/** A page ends with the row that fills it, in rows or in bytes, reports that, and the next one continues. */
export const pages: Cases = ({ it }, fresh) => {
  it("a page of values, history or records ends when full in bytes, and continues", async () => {
    const { store } = fresh();
    const key = unique("v");
    for (const name of ["a", "b", "c", "d"]) await store.intake.putValue(tenant, key + name, large, "unconditional");
    await store.intake.putValue(tenant, `${key}e`, "small", "unconditional");
    const values = await pagesOf((last?: { key: string }) => store.read.values(tenant, key, undefined, last?.key));
    assert.deepEqual(lengths(values), [3, 2]);
    assert.deepEqual(values.flat().map((one) => one.key), ["a", "b", "c", "d", "e"].map((name) => key + name)); // biome-ignore format: a line

    for (let k = 0; k < 4; k++) await store.intake.putValue(tenant, `${key}h`, large, "unconditional");
    const history = await pagesOf((last?: { version: number }) =>
      store.read.valueHistory(tenant, `${key}h`, last?.version ?? 0),
    );
    assert.deepEqual(lengths(history), [3, 1]);

    const run = await heldRun(store);
    for (let k = 0; k < 4; k++) await store.fenced.append(run.fence, { after: 1 + k, records: [step(k, large)] });
    const journal = await pagesOf((last?: { seq: number }) =>
      store.read.journal(tenant, { journal: run.journal }, { from: (last?.seq ?? 0) + 1 }),
    );
    assert.deepEqual(journal.flat().map(({ seq }) => seq), [1, 2, 3, 4, 5]); // biome-ignore format: a line
    assert.ok(journal.length > 1);
    const feed = await store.read.feed(undefined, 1_000, tenant);
    assert.ok(feed.more === true && feed.records.length >= 1);
  });

  it("gates and effects continue after a cursor, each once, despite new rows", async () => {
    const { store } = fresh();
    const started = [await begin(store), await begin(store), await begin(store)];
    for (const run of started) {
      for (const pos of [0, 2]) await run.write(record("gate.opened", { pos, name: "g" }), intent(pos + 1));
    }
    const rowOf = ({ run, pos }: { run: number; pos: number }) => `${run}.${pos}`;
    const all = (positions: readonly number[]) => started.flatMap(({ journal }) => positions.map((pos) => `${journal}.${pos}`)); // biome-ignore format: a line
    for (const open of [true, false]) {
      const gates = await pagesOf<GateRow>((last) =>
        store.read.gates(tenant, { open, limit: 2, ...(last && { after: gateCursor(last) }) }),
      );
      assert.deepEqual(gates.flat().map(rowOf).sort(), all([0, 2]).sort());
      assert.ok(gates.length >= 3);
    }
    const [first] = started;
    const own = await store.read.gates(tenant, { run: first!.id });
    assert.deepEqual(await store.read.gates(tenant, { run: first!.id, after: gateCursor(own[0]!) }), own.slice(1));
    const effects = await pagesOf<EffectRow>((last) =>
      store.read.effects(tenant, { limit: 4, status: ["PENDING"], ...(last && { after: effectCursor(last) }) }),
    );
    assert.deepEqual(effects.flat().map(rowOf), all([1, 3]));
    assert.deepEqual(lengths(effects).slice(0, 2), [4, 2]);
    for (const after of ["", "1", "1.2", "a.b.c", "1.2.3.4", "9999999999999999.1.1"]) {
      await refused("TAPE_BAD_INPUT", store.read.gates(tenant, { after }));
      await refused("TAPE_BAD_INPUT", store.read.effects(tenant, { after }));
    }
    await refused("TAPE_BAD_INPUT", store.read.effects(tenant, { run: first!.id, after: "1.2.3" }));
  });

  it("a page of runs reports whether there are more, with each run's lease", async () => {
    const { store } = fresh();
    for (let k = 0; k < 4; k++) {
      const run = await heldRun(store);
      const ended = record("run.ended", { status: "COMPLETED", outcome: { value: large }, notesTaken: 0 });
      await store.fenced.append(run.fence, { after: 1, records: [ended] });
    }
    await heldRun(store);
    const runs = await pagesOf((last?: { journal: number }) =>
      store.read.runs(tenant, last === undefined ? {} : { before: last.journal }),
    );
    assert.deepEqual(lengths(runs), [4, 1]);
    assert.ok(runs.flat().every(({ journal, id, lease }) => lease.journal === journal && lease.name === id));
    const few = await store.read.runs(tenant, { limit: 2 });
    assert.deepEqual([few.length, few.more], [2, true]);
  });

  it("schedules are listed by id, page by page", async () => {
    const { store } = fresh();
    for (const id of ["a", "b", "c"]) {
      await store.intake.putSchedule(tenant, {
        id,
        spec: scheduleSpec(id === "c" ? "x" : large),
        nextAt: null,
        paused: false,
      });
    }
    const found = await pagesOf((last?: { id: string }) =>
      store.read.schedules(tenant, { limit: 2, ...(last && { above: last.id }) }),
    );
    assert.deepEqual(
      found.map((page) => page.map(({ id }) => id)),
      [["a", "b"], ["c"]],
    );
  });

  it("the feed cursor of an idle tenant passes foreign records, but none of its own", async () => {
    const { store } = fresh();
    const before = await store.read.feed(undefined, 100, "globex");
    await store.intake.createRuns(
      tenant,
      Array.from({ length: 50 }, () => spec()),
    );
    const after = await store.read.feed(before.cursor, 100, "globex");
    assert.deepEqual([after.records.length, after.more], [0, undefined]);
    assert.notEqual(after.cursor, before.cursor);
    const [created] = await store.intake.createRuns("globex", [spec()]);
    const page = await store.read.feed(after.cursor, 100, "globex");
    assert.deepEqual(page.records.map(({ journal }) => journal), [created!.ok ? created!.journal : 0]); // biome-ignore format: a line
    assert.deepEqual((await store.read.feed(page.cursor, 100, "globex")).records, []);
  });

  it("a list continues at its cursor when that run has been deleted", async () => {
    const { store, elapse } = fresh();
    const prefix = unique("walked");
    const runs: Holder[] = [];
    for (let k = 0; k < 5; k++) {
      runs.push(await begin(store, { id: `${prefix}-${k}` }));
      await elapse(3);
    }
    const [, second, third, ...others] = runs as [Holder, Holder, Holder, ...Holder[]];
    for (const run of [second, third]) await run.write(ended("COMPLETED", { outcome: 1 }));
    await elapse(3);
    const cut = await store.read.now();
    await elapse(3);
    for (const run of others) await run.write(ended("COMPLETED", { outcome: 1 }));
    const filters: readonly RunFilter[] = [
      ...[{}, { status: ["COMPLETED", "RUNNING"] }, { startedSince: 0 }, { startedUntil: 2 ** 48 }, { prefix }],
      ...[{ endedSince: 0 }, { endedUntil: 2 ** 48, workflow: "w" }],
    ] as const;
    const behind = async (filter: RunFilter): Promise<string[]> =>
      (await store.read.runs(tenant, { ...filter, before: third.journal })).map(({ id }) => id);
    const was = await Promise.all(filters.map(behind));
    assert.deepEqual(was[0], [second.id, runs[0]!.id]);
    assert.equal(await store.intake.prune(tenant, cut, 10), 2);
    for (const [k, filter] of filters.entries()) {
      const left = was[k]!.filter((id) => id !== second.id);
      assert.deepEqual(await behind(filter), left, JSON.stringify(filter));
      await refused("TAPE_NOT_FOUND", store.read.runs("globex", { ...filter, before: third.journal }));
    }
  });
};

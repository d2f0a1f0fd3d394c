import { strict as assert } from "node:assert";
import type { RunSpec } from "../../src/store/contract/store.ts";
import { type Cases, record, refused, spec, tenant, unique } from "./frame.ts";
import { ended, Holder } from "./holder.ts";
import { findRequest } from "./lease-fixtures.ts";
import {
  admit,
  admitOne,
  assertProjected,
  countsOf,
  enqueue,
  newQueue,
  positionOf,
  stateOf,
} from "./queue-fixtures.ts";

const start = { pos: 0, purpose: "start" } as const;
const expire = { pos: 0, purpose: "expire" } as const;

/** Starts that come later, expire, or are one with others. */
export const queueStarts: Cases = ({ it }, fresh) => {
  const create = async (more: Partial<RunSpec>) => {
    const given = spec(more);
    const [created] = await fresh().store.intake.createRuns(tenant, [given]);
    if (!created!.ok) throw created!.error;
    return { ...created!, id: given.id };
  };
  const fire = (run: number, timer: { pos: number; purpose: string }) =>
    fresh().store.intake.fireTimer(tenant, { run, ...timer });
  const found = async () => {
    const { store } = fresh();
    const terms = await store.claim.find(findRequest({ tenant, workflows: ["w"] }));
    return terms.map((term) => new Holder(store, term, term.name!));
  };

  it("a delayed run joins its queue when its timer fires, not when a signal arrives", async () => {
    const { store, elapse } = fresh();
    const queue = await newQueue(store);
    const run = await create({ queue, delayMs: 600 });
    assert.deepEqual(await stateOf(store, run.id), ["DELAYED", "WAITING"]);
    await store.intake.signal(tenant, run.id, { name: "s", value: 1 });
    assert.equal(await fire(run.journal, start), false, "never early");
    assert.deepEqual(await admit(store, queue), []);
    assert.equal((await positionOf(store, run.id)).reasons[0]?.why, "delayed");
    await elapse(700);
    const due = await store.read.dueTimers(10, tenant);
    assert.ok(due.some(({ run: of, purpose }) => of === run.journal && purpose === "start"));
    assert.equal(await fire(run.journal, start), true);
    assert.deepEqual(await stateOf(store, run.id), ["QUEUED", "QUEUED"]);
    assert.equal((await admitOne(store, queue)).id, run.id);
    await assertProjected(store);
  });

  it("a delayed run without a queue waits for its timer alone", async () => {
    const { store, elapse } = fresh();
    const at = await store.read.now();
    const run = await create({ startAt: at + 40 });
    await store.intake.signal(tenant, run.id, { name: "s", value: 1 });
    const preload = { withinMs: 60_000, limit: 10 };
    assert.deepEqual(await store.claim.find(findRequest({ tenant, workflows: ["w"], preload })), []);
    await elapse(60);
    assert.equal(await fire(run.journal, start), true);
    assert.deepEqual(await stateOf(store, run.id), ["out", "RUNNABLE"]);
    const [term] = await found();
    assert.equal(term?.id, run.id);
    await term.write(ended("COMPLETED", { outcome: 1, notesTaken: 2 }));
    await assertProjected(store);
  });

  it("a delayed run that is cancelled never starts", async () => {
    const { store } = fresh();
    const queue = await newQueue(store);
    const run = await create({ queue, delayMs: 60_000, expiresMs: 1_000 });
    await store.intake.cancel(tenant, run.id, { reason: "r" });
    const [slot, status] = await stateOf(store, run.id);
    assert.equal(slot, "out");
    assert.deepEqual(
      (await store.read.timers(tenant, { run: run.id })).map(({ status }) => status),
      ["CANCELLED", "CANCELLED"],
    );
    if (status !== "CANCELLED") {
      assert.equal(status, "RUNNABLE"); // a server has ended it already
      const [term] = await found();
      await term!.write(ended("CANCELLED", { outcome: 1, notesTaken: 1 }));
    }
    await assertProjected(store);
  });

  it("a run that waits too long leaves the queue; one that has started does not expire", async () => {
    const { store, elapse } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    const first = await create({ queue, expiresMs: 40 });
    const second = await create({ queue, expiresMs: 40 });
    const running = await admitOne(store, queue);
    assert.equal(running.id, first.id);
    await elapse(60);
    assert.equal(await fire(first.journal, expire), false, "its timer was cancelled when it started");
    assert.equal(await fire(second.journal, expire), true);
    assert.deepEqual(await stateOf(store, second.id), ["out", "RUNNABLE"]);
    assert.deepEqual(await countsOf(store, queue), [1, 0]);
    const notes = await store.read.journal(tenant, { run: second.id }, { inbox: true });
    assert.deepEqual(
      notes.map(({ kind, data }) => [kind, data]),
      [["timer.fired", expire]],
    );
    await running.write(ended("COMPLETED", { outcome: 1 }));
    await assertProjected(store);
  });

  it("a unique key has one live run: others join it or are refused", async () => {
    const { store } = fresh();
    const key = unique("key");
    const join = { key, onConflict: "join" } as const;
    const first = await create({ unique: join });
    assert.equal(first.fresh, true);
    const joined = await create({ unique: join });
    assert.deepEqual([joined.fresh, joined.run, joined.journal], [false, first.id, first.journal]);
    const error = await refused("TAPE_RUN_LIVE", create({ unique: { key, onConflict: "reject" } }));
    assert.equal(error.details.run, first.id);
    assert.equal((await create({ unique: join, workflow: "other" })).fresh, true, "another workflow has its own keys");
    const [again] = await store.intake.createRuns(tenant, [spec({ id: first.id, unique: join })]);
    assert.ok(again?.ok && !again.fresh && again.run === undefined, "the same start, repeated");
    const term = (await found()).find(({ id }) => id === first.id)!;
    await term.write(ended("COMPLETED", { outcome: 1 }));
    assert.equal((await create({ unique: join })).fresh, true, "an ended run has no key");
    await assertProjected(store);
  });

  it("concurrent starts with one unique key create one run", async () => {
    const { store, another } = fresh();
    const other = await another();
    const unique1 = { key: unique("key"), onConflict: "join" } as const;
    const specs = Array.from({ length: 16 }, () => spec({ unique: unique1 }));
    const results = await Promise.all(
      specs.map(async (one, k) => (await (k % 2 === 0 ? store : other).intake.createRuns(tenant, [one]))[0]!),
    );
    const created = results.filter((result) => result.ok && result.fresh);
    assert.equal(created.length, 1);
    assert.equal(new Set(results.map((result) => (result.ok ? result.journal : 0))).size, 1, "all have the same run");
    await assertProjected(store);
  });

  it("a start may replace the run with its key, and waits until that one has ended", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { counts: "started", perKey: { concurrency: 1 } });
    const replace = { queue, key: "k", unique: { key: "k", onConflict: "cancel" } } as const;
    const first = await create(replace);
    const running = await admitOne(store, queue);
    const second = await create(replace);
    const third = await create(replace);
    assert.deepEqual([second.fresh, third.fresh], [true, true]);
    assert.deepEqual(await stateOf(store, second.id), ["out", "RUNNABLE"], "it was replaced before it ran");
    assert.deepEqual(await admit(store, queue, 1, { workflows: ["none"] }), []);
    const [note] = await store.read.journal(tenant, { run: first.id }, { inbox: true });
    assert.equal(note?.kind, "cancel.requested");
    await running.write(record("notes.taken", { through: 1 }), ended("CANCELLED", { outcome: 1, notesTaken: 1 }));
    const [ending] = (await found()).filter(({ id }) => id === second.id);
    await ending!.write(ended("CANCELLED", { outcome: 1, notesTaken: 1 }));
    assert.equal((await admitOne(store, queue)).id, third.id);
    const join = await create({ queue, key: "k", unique: { key: "k", onConflict: "join" } });
    assert.equal(join.run, third.id);
    await assertProjected(store);
  });

  it("replacing needs a queue that runs one of each key until it has ended", async () => {
    const { store } = fresh();
    const running = await newQueue(store, { perKey: { concurrency: 1 } });
    const two = await newQueue(store, { counts: "started", perKey: { concurrency: 2 } });
    const unique1 = { key: "k", onConflict: "cancel" } as const;
    await refused("TAPE_BAD_INPUT", create({ unique: unique1 }));
    await refused("TAPE_BAD_INPUT", create({ unique: unique1, queue: running, key: "k" }));
    await refused("TAPE_BAD_INPUT", create({ unique: unique1, queue: two, key: "k" }));
  });

  it("debounced starts are one run with the last input, until its timer fires", async () => {
    const { store, elapse } = fresh();
    const debounce = { key: unique("key"), waitMs: 40 };
    const first = await create({ input: 1, debounce });
    const second = await create({ input: 2, debounce });
    assert.deepEqual([second.fresh, second.run], [false, first.id]);
    const third = await create({ input: 3, debounce });
    assert.equal(third.journal, first.journal);
    const notes = await store.read.journal(tenant, { run: first.id }, { inbox: true });
    assert.deepEqual(
      notes.map(({ kind, data }) => [kind, (data as { input: unknown }).input]),
      [
        ["start.moved", 2],
        ["start.moved", 3],
      ],
    );
    assert.deepEqual(await found(), [], "a further start does not start it");
    await elapse(60);
    assert.equal(await fire(first.journal, start), true);
    const next = await create({ input: 4, debounce });
    assert.equal(next.fresh, true, "a start after the firing is another run");
    assert.deepEqual(
      (await found()).map(({ id }) => id),
      [first.id],
    );
    await assertProjected(store);
  });

  it("a debounced run starts at the latest after its longest wait, or after as many starts as are allowed", async () => {
    const { store, elapse } = fresh();
    const bounded = { key: unique("key"), waitMs: 2_000, maxWaitMs: 2_100 };
    const run = await create({ debounce: bounded });
    await elapse(300);
    await create({ debounce: bounded });
    const [timer] = await store.read.timers(tenant, { run: run.id });
    const inMs = timer!.dueAt - (await store.read.now());
    assert.ok(inMs <= 1_800, `due in ${inMs} ms, not in 2000`);
    assert.equal(await fire(run.journal, start), false);
  });

  it("bad starts are refused before anything is written", async () => {
    const { store } = fresh();
    const queue = await newQueue(store);
    const cases: [Parameters<typeof create>[0], "TAPE_BAD_INPUT" | "TAPE_TOO_LARGE" | "TAPE_QUEUE_UNKNOWN"][] = [
      [{ queue: "nowhere" }, "TAPE_QUEUE_UNKNOWN"],
      [{ queue, priority: 0 }, "TAPE_BAD_INPUT"],
      [{ queue, priority: 10 }, "TAPE_BAD_INPUT"],
      [{ queue, priority: 1.5 }, "TAPE_BAD_INPUT"],
      [{ queue, key: "k".repeat(10_000) }, "TAPE_TOO_LARGE"],
      [{ queue, key: "a\0" }, "TAPE_BAD_INPUT"],
      [{ queue, weight: 0 }, "TAPE_BAD_INPUT"],
      [{ queue, delayMs: -1 }, "TAPE_BAD_INPUT"],
      [{ queue, delayMs: 1, startAt: 1 }, "TAPE_BAD_INPUT"],
      [{ queue, expiresMs: 0 }, "TAPE_BAD_INPUT"],
      [{ queue, delayMs: Number.MAX_SAFE_INTEGER }, "TAPE_BAD_INPUT"],
      [{ queue, startAt: Number.MAX_SAFE_INTEGER }, "TAPE_BAD_INPUT"],
      [{ queue, expiresMs: 5e12 }, "TAPE_BAD_INPUT"],
      [{ debounce: { key: "k", waitMs: 5e12 } }, "TAPE_BAD_INPUT"],
      [{ expiresMs: 5 }, "TAPE_BAD_INPUT"],
      [{ key: "k" }, "TAPE_BAD_INPUT"],
      [{ priority: 5 }, "TAPE_BAD_INPUT"],
      [{ unique: { key: "", onConflict: "join" } }, "TAPE_BAD_INPUT"],
      [{ unique: { key: "k", onConflict: "maybe" as never } }, "TAPE_BAD_INPUT"],
      [{ debounce: { key: "k", waitMs: 0 } }, "TAPE_BAD_INPUT"],
      [{ debounce: { key: "k", waitMs: 5, maxWaitMs: 4 } }, "TAPE_BAD_INPUT"],
      [{ debounce: { key: "k", waitMs: 5 }, delayMs: 5 }, "TAPE_BAD_INPUT"],
    ];
    const before = (await store.read.runs(tenant)).length;
    for (const [more, code] of cases) await refused(code, create(more));
    assert.equal((await store.read.runs(tenant)).length, before);
    assert.deepEqual(await countsOf(store, queue), [0, 0]);
    assert.equal((await enqueue(store, queue, 1, { key: "k".repeat(256) })).length, 1);
  });
};

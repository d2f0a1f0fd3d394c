import { strict as assert } from "node:assert";
import { decode } from "../../src/base/codec.ts";
import { type Cases, refused, spec, tenant } from "./frame.ts";
import { ended } from "./holder.ts";
import {
  admit,
  admitOne,
  assertProjected,
  audit,
  countsOf,
  enqueue,
  findIn,
  newQueue,
  positionOf,
} from "./queue-fixtures.ts";

/** Limits, order and fairness of queues, and what operators may change. */
export const queueLimits: Cases = ({ it }, fresh) => {
  it("the limits of queue, key and process hold together", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 5, perKey: { concurrency: 2 } });
    for (const key of ["a", "b", "c"]) await enqueue(store, queue, 4, { key });
    assert.equal((await admit(store, queue, 3)).length, 3, "the room of the process");
    const more = await admit(store, queue);
    assert.equal(more.length, 2, "the limit of the queue");
    const keys = await store.read.queuePartitions(tenant, queue);
    assert.deepEqual(keys.map(({ running }) => running).sort(), [1, 2, 2], "the limit of each key");
    await assertProjected(store);
  });

  it("a find without room leaves the queue and its abandoned runs to others", async () => {
    const { store } = fresh();
    const queue = await newQueue(store);
    await enqueue(store, queue, 1);
    const run = await admitOne(store, queue);
    await run.release(0, { nextReactor: "recovery" });
    assert.deepEqual(await admit(store, queue, 0), []);
    assert.equal((await admitOne(store, queue)).id, run.id);
  });

  it("priority 1 comes first, then the older run, within each key", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    const order: string[] = [];
    for (const priority of [5, 9, 1, 5, 1]) order.push(...(await enqueue(store, queue, 1, { priority })));
    const served: string[] = [];
    for (let k = 0; k < order.length; k++) {
      const run = await admitOne(store, queue);
      served.push(run.id);
      await run.write(ended("COMPLETED", { outcome: 1 }));
    }
    assert.deepEqual(
      served,
      [2, 4, 0, 3, 1].map((k) => order[k]),
    );
  });

  it("a priority comes first across keys, too", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    await enqueue(store, queue, 2, { key: "a" });
    const [urgent] = await enqueue(store, queue, 1, { key: "b", priority: 2 });
    assert.equal((await admitOne(store, queue)).id, urgent);
  });

  it("a second priority of one key comes before a lower one of another", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 2 });
    const urgent = [];
    for (const priority of [1, 2]) urgent.push(...(await enqueue(store, queue, 1, { key: "a", priority })));
    await enqueue(store, queue, 1, { key: "b" });
    const found = await admit(store, queue);
    assert.deepEqual(found.map(({ id }) => id).sort(), urgent.sort());
  });

  it("keys take turns by weight, however many runs one of them has", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 8 });
    await enqueue(store, queue, 40, { key: "a" });
    await enqueue(store, queue, 40, { key: "b", weight: 3_000 });
    const counts = { a: 0, b: 0 };
    for (let round = 0; round < 5; round++) {
      for (const run of await admit(store, queue)) {
        counts[(await positionOf(store, run.id)).key as "a" | "b"]++;
        await run.write(ended("COMPLETED", { outcome: 1 }));
      }
    }
    assert.deepEqual(counts, { a: 10, b: 30 });
    const [late] = await enqueue(store, queue, 1, { key: "late" });
    assert.ok(
      (await admit(store, queue)).some(({ id }) => id === late),
      "a new key does not wait for the backlog of others",
    );
    await assertProjected(store);
  });

  it("a full key blocks no other", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { perKey: { concurrency: 1 } });
    await enqueue(store, queue, 20, { key: "full" });
    await admitOne(store, queue);
    const free = await enqueue(store, queue, 3, { key: "free" });
    assert.deepEqual(
      (await admit(store, queue)).map(({ id }) => id),
      [free[0]],
    );
  });

  it("a rate bounds the starts in any window, and resumed runs pay nothing", async () => {
    const { store, elapse } = fresh();
    const queue = await newQueue(store, { rate: { limit: 2, perMs: 1_000, burst: 2 } });
    await enqueue(store, queue, 9);
    const first = await admit(store, queue);
    assert.equal(first.length, 2, "the burst");
    assert.deepEqual(await admit(store, queue), []);
    await first[0]!.release();
    await store.intake.signal(tenant, first[0]!.id, { name: "s", value: 1 });
    assert.deepEqual(
      (await admit(store, queue)).map(({ id }) => id),
      [first[0]!.id],
    );
    const waiting = (await store.read.queueSlots(tenant, queue, { state: "QUEUED" }))[0]!;
    const rate = (await positionOf(store, waiting.run)).reasons.find(({ why }) => why === "rate");
    assert.ok(rate?.why === "rate" && rate.nextAt > 0);
    const due = (await store.read.agenda(tenant, ["w"], [queue])).find(({ reactor }) => reactor === "recovery");
    assert.ok(due !== undefined && due.dueInMs > 0 && due.dueInMs <= 500, `due in ${due?.dueInMs} ms`);
    await elapse(520);
    assert.equal((await admit(store, queue)).length >= 1, true);
    await assertProjected(store);
  });

  it("the rate of a key defers that key alone, until the agenda's time", async () => {
    const { store, elapse } = fresh();
    const queue = await newQueue(store, { perKey: { rate: { limit: 2, perMs: 1_000, burst: 1 } } });
    await enqueue(store, queue, 3, { key: "a" });
    await enqueue(store, queue, 1, { key: "b" });
    assert.equal((await admit(store, queue)).length, 2);
    assert.deepEqual(await admit(store, queue), []);
    const [a] = await store.read.queuePartitions(tenant, queue);
    assert.ok(a?.key === "a" && a.nextAt !== undefined && !a.ready);
    const due = (await store.read.agenda(tenant, ["w"], [queue])).find(({ reactor }) => reactor === "recovery");
    assert.ok(due !== undefined && due.dueInMs > 0 && due.dueInMs <= 500);
    await elapse(510);
    assert.equal((await admit(store, queue)).length, 1);
    await assertProjected(store);
  });

  it("the agenda has work of a queue only if a run could start", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    const due = async () =>
      (await store.read.agenda(tenant, ["w"], [queue])).flatMap(({ reactor, dueInMs }) => (reactor ? [dueInMs] : []));
    assert.deepEqual(await due(), []);
    await enqueue(store, queue, 2);
    assert.deepEqual(await due(), [0]);
    const run = await admitOne(store, queue);
    assert.deepEqual(await due(), [], "it is full");
    await run.write(ended("COMPLETED", { outcome: 1 }));
    assert.deepEqual(await due(), [0]);
    await store.intake.pauseQueue(tenant, queue, true, audit);
    assert.deepEqual(await due(), []);
  });

  it("an operator's limits apply until they are reset, and evict nothing", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 3, perKey: { concurrency: 3 } });
    await enqueue(store, queue, 6);
    const runs = await admit(store, queue);
    const lowered = await store.intake.changeQueue(tenant, queue, { concurrency: 1 }, audit);
    assert.deepEqual([lowered.limits.concurrency, lowered.override, lowered.running], [1, { concurrency: 1 }, 3]);
    await runs[0]!.write(ended("COMPLETED", { outcome: 1 }));
    assert.deepEqual(await admit(store, queue), [], "nothing starts until there is room");
    await store.intake.putQueue(tenant, queue, { counts: "running", concurrency: 4, perKey: { concurrency: 3 } });
    assert.deepEqual(await admit(store, queue), [], "the operator's limit stays");
    const reset = await store.intake.resetQueue(tenant, queue, audit);
    assert.deepEqual([reset.limits.concurrency, reset.override], [4, undefined]);
    assert.equal((await admit(store, queue)).length, 1, "the limit of the key is 3");
    await store.intake.changeQueue(tenant, queue, { perKey: { concurrency: null } }, audit);
    assert.equal((await admit(store, queue)).length, 1, "a raised limit applies to keys that were full");
    const actions = (await store.read.audit(tenant)).map(({ action }) => action);
    assert.deepEqual(actions.slice(0, 3), ["queue.set", "queue.reset", "queue.set"]);
    await assertProjected(store);
  });

  it("pausing a queue or a key keeps back those that wait", async () => {
    const { store } = fresh();
    const queue = await newQueue(store);
    await enqueue(store, queue, 2, { key: "a" });
    const [other] = await enqueue(store, queue, 1, { key: "b" });
    const view = await store.intake.pauseQueue(tenant, queue, true, audit);
    assert.deepEqual([view.paused?.by, view.paused?.reason], ["ann", "drill"]);
    assert.deepEqual(await admit(store, queue), []);
    const [waiting] = await store.read.queueSlots(tenant, queue);
    assert.equal((await positionOf(store, waiting!.run)).reasons[0]?.why, "paused");
    await store.intake.pauseQueue(tenant, queue, false, audit);
    await store.intake.pauseQueue(tenant, queue, true, audit, "a");
    assert.equal((await admitOne(store, queue)).id, other);
    await store.intake.pauseQueue(tenant, queue, false, audit, "a");
    assert.equal((await admit(store, queue)).length, 2);
    await assertProjected(store);
  });

  it("what a queue counts changes only while it is empty", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    await enqueue(store, queue, 1);
    await refused("TAPE_QUEUE_CHANGED", store.intake.putQueue(tenant, queue, { counts: "started" }));
    const run = await admitOne(store, queue);
    await refused("TAPE_QUEUE_CHANGED", store.intake.putQueue(tenant, queue, { counts: "started" }));
    await run.write(ended("COMPLETED", { outcome: 1 }));
    const changed = await store.intake.putQueue(tenant, queue, { counts: "started" });
    assert.deepEqual([changed.fresh, changed.version, changed.replaced?.counts], [false, 2, "running"]);
    const again = await store.intake.putQueue(tenant, queue, { counts: "started" });
    assert.deepEqual([again.version, again.replaced], [2, undefined], "the same definition changes nothing");
  });

  it("a run of a workflow that the process does not have is left, and not passed within its key", async () => {
    const { store } = fresh();
    const queue = await newQueue(store);
    const foreign = spec({ queue, key: "a", workflow: "x" });
    await store.intake.createRuns(tenant, [foreign]);
    await enqueue(store, queue, 1, { key: "a" });
    const [other] = await enqueue(store, queue, 1, { key: "b" });
    assert.deepEqual(
      (await admit(store, queue)).map(({ id }) => id),
      [other],
    );
    const both = await admit(store, queue, 100, { workflows: ["w", "x"] });
    assert.equal(both[0]?.id, foreign.id);
    assert.equal(both.length, 2);
  });

  it("a run that is admitted for the first time comes with its first record, if that is short", async () => {
    const { store } = fresh();
    const queue = await newQueue(store);
    const [short] = await enqueue(store, queue, 1, { input: { to: "ann" } });
    const [long] = await enqueue(store, queue, 1, { input: "x".repeat(5_000) });
    const runs = new Map((await admit(store, queue)).map((run) => [run.id, run]));
    const [created] = await store.read.journal(tenant, { run: short! });
    const { v: _version, ...data } = decode(runs.get(short!)!.term.created!) as { v: number };
    assert.deepEqual(data, created!.data);
    assert.equal(runs.get(long!)!.term.created, undefined);
    const again = runs.get(short!)!;
    await again.release();
    await store.intake.signal(tenant, short!, { name: "s", value: 1 });
    const resumed = await admitOne(store, queue);
    assert.deepEqual([resumed.id, resumed.term.created], [short, undefined]);
  });

  it("a find for free slots alone admits runs, finds no other work, and can be repeated", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 2 });
    const plain = spec();
    await store.intake.createRuns(tenant, [plain]);
    await enqueue(store, queue, 3);
    const request = findIn(queue, 100, { only: "queues" });
    const terms = await store.claim.find(request);
    assert.equal(terms.length, 2);
    const repeated = await store.claim.find(request);
    const fences = (some: typeof terms) => some.map(({ fence }) => fence).toSorted((a, b) => a.journal - b.journal);
    assert.deepEqual(fences(repeated), fences(terms), "its response may have been lost");
    const all = await store.claim.find(findIn(queue));
    assert.deepEqual(
      all.map(({ name }) => name),
      [plain.id],
    );
  });

  it("lists show queues, keys and runs page by page", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    for (const key of ["", "a", "b"]) await enqueue(store, queue, 2, { key });
    await admitOne(store, queue);
    const [view] = (await store.read.queues(tenant)).filter(({ name }) => name === queue);
    const { running, waiting, keys, more, started, oldestWaitMs } = view!;
    assert.deepEqual([running, waiting, keys, more, started], [1, 5, 3, false, 1]);
    assert.ok(oldestWaitMs! >= 0);
    const page = await store.read.queuePartitions(tenant, queue, { limit: 2 });
    assert.deepEqual([page.map(({ key }) => key), page.more], [["", "a"], true]);
    const rest = await store.read.queuePartitions(tenant, queue, { above: "a" });
    assert.deepEqual(
      rest.map(({ key, waiting: n, weight }) => [key, n, weight]),
      [["b", 2, 1]],
    );
    const slots = await store.read.queueSlots(tenant, queue);
    assert.deepEqual(
      slots.map(({ key, state }) => `${state} ${key}`),
      ["HELD ", "QUEUED ", "QUEUED a", "QUEUED a", "QUEUED b", "QUEUED b"],
    );
    assert.equal((await store.read.queueSlots(tenant, queue, { key: "a", limit: 1 })).length, 1);
    await refused("TAPE_QUEUE_UNKNOWN", store.read.queuePartitions(tenant, "nowhere"));
  });

  it("keys that have been empty for long are forgotten", async () => {
    const { store } = fresh();
    const queue = await newQueue(store);
    for (let n = 0; n < 70; n++) {
      await enqueue(store, queue, 1, { key: `k${String(n).padStart(3, "0")}` });
      await (await admitOne(store, queue)).write(ended("COMPLETED", { outcome: 1 }));
    }
    const keys = await store.read.queuePartitions(tenant, queue);
    assert.ok(keys.length < 45, `${keys.length} of 70 keys are kept`);
    await assertProjected(store);
  });

  it("bad limits are refused before anything is written", async () => {
    const { store } = fresh();
    const { putQueue, changeQueue } = store.intake;
    const bad: unknown[] = [
      { counts: "running", concurrency: 0 },
      { counts: "running", concurrency: 1.5 },
      { counts: "running", rate: { limit: -1, perMs: 1_000, burst: 1 } },
      { counts: "running", rate: { limit: 1, perMs: 0, burst: 1 } },
      { counts: "often" },
      { counts: "running", depth: 5 },
    ];
    for (const one of bad) await refused("TAPE_BAD_INPUT", putQueue(tenant, "bad", one as never));
    assert.ok(!(await store.read.queues(tenant)).some(({ name }) => name === "bad"));
    const queue = await newQueue(store);
    await refused("TAPE_BAD_INPUT", changeQueue(tenant, queue, { concurrency: -1 }, audit));
    await refused("TAPE_BAD_INPUT", store.claim.find({ ...findIn(queue), queues: [{ name: queue, room: -1 }] }));
    assert.deepEqual(await countsOf(store, queue), [0, 0]);
  });
};

import { strict as assert } from "node:assert";
import {
  acquired,
  type Cases,
  claimant,
  nonce,
  record,
  refused,
  request,
  spec,
  step,
  tenant,
  unique,
} from "./frame.ts";
import { ended } from "./holder.ts";
import { brief, findRequest, lasting, pastBrief, preempting } from "./lease-fixtures.ts";
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
  stateOf,
} from "./queue-fixtures.ts";

/** How a run moves through its queue: every transition, with its record or note. */
export const queues: Cases = ({ it }, fresh) => {
  it("[INV-19] a run of a queue starts only with a slot, which its first term brings", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    const [first, second] = await enqueue(store, queue, 2, { key: "k" });
    assert.deepEqual(await stateOf(store, first!), ["QUEUED", "QUEUED"]);
    assert.deepEqual(await store.claim.find(findRequest({ tenant, workflows: ["w"] })), [], "no find passes the queue");
    const run = await admitOne(store, queue);
    assert.equal(run.id, first);
    assert.equal(run.term.queue, queue);
    assert.deepEqual(await stateOf(store, first!), ["HELD", "RUNNING"]);
    assert.deepEqual(await stateOf(store, second!), ["QUEUED", "QUEUED"]);
    const [, started] = await store.read.journal(tenant, { run: first! });
    assert.ok(started?.kind === "term.started");
    const { queue: of, key, waitedMs } = started.data.admitted!;
    assert.deepEqual([of, key, waitedMs >= 0], [queue, "k", true]);
    assert.deepEqual(await admit(store, queue), [], "the queue is full");
    await assertProjected(store);
  });

  it("a run that ends returns its slot to the next", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    const [first, second] = await enqueue(store, queue, 2);
    const run = await admitOne(store, queue);
    await run.write(step(0));
    await run.write(ended("COMPLETED", { outcome: 1 }));
    assert.deepEqual(await stateOf(store, first!), ["out", "COMPLETED"]);
    assert.equal((await admitOne(store, queue)).id, second);
    await assertProjected(store);
  });

  it("a run that parks gives up its slot, and continues before all that have not run", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    const [first, second] = await enqueue(store, queue, 3, { priority: 1 });
    const run = await admitOne(store, queue);
    await run.release();
    assert.deepEqual(await stateOf(store, first!), ["PARKED", "WAITING"]);
    const other = await admitOne(store, queue);
    assert.equal(other.id, second);
    await store.intake.signal(tenant, first!, { name: "s", value: 1 });
    assert.deepEqual(await stateOf(store, first!), ["QUEUED", "QUEUED"]);
    assert.deepEqual(
      await store.claim.find(findRequest({ tenant, workflows: ["w"] })),
      [],
      "a wake does not pass the queue",
    );
    assert.deepEqual((await positionOf(store, first!)).reasons[0]?.why, "queue_full");
    await other.write(ended("COMPLETED", { outcome: 1 }));
    const again = await admitOne(store, queue);
    assert.deepEqual([again.id, again.term.reason, again.term.notes], [first, "wake", 1]);
    await assertProjected(store);
  });

  it("in a queue that counts started runs, a run keeps its slot while it waits", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 1, counts: "started" });
    const [first, second] = await enqueue(store, queue, 2);
    const run = await admitOne(store, queue);
    await run.release();
    assert.deepEqual(await stateOf(store, first!), ["HELD", "WAITING"]);
    assert.deepEqual(await admit(store, queue), []);
    await store.intake.signal(tenant, first!, { name: "s", value: 1 });
    assert.deepEqual(await stateOf(store, first!), ["HELD", "RUNNABLE"]);
    const again = await admitOne(store, queue);
    assert.equal(again.id, first);
    await again.write(record("run.decided", { cause: "completed", outcome: 1 }));
    assert.deepEqual(await stateOf(store, first!), ["HELD", "ENDING"]);
    await again.write(ended("COMPLETED", { outcome: undefined, notesTaken: 1 }));
    assert.equal((await admitOne(store, queue)).id, second);
    await assertProjected(store);
  });

  it("a decided run has left the queue: closing executes no workflow code", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    const [first, second] = await enqueue(store, queue, 2);
    const run = await admitOne(store, queue);
    await run.write(record("run.decided", { cause: "completed", outcome: 1 }));
    assert.deepEqual(await stateOf(store, first!), ["out", "ENDING"]);
    assert.equal((await admitOne(store, queue)).id, second);
    await run.release();
    await store.intake.signal(tenant, first!, { name: "s", value: 1 });
    const closing = await store.claim.find(findRequest({ tenant, workflows: ["w"] }));
    assert.deepEqual(
      closing.map(({ journal }) => journal),
      [run.journal],
      "recovery finds it without its queue",
    );
    await assertProjected(store);
  });

  it("[INV-19] an expired lease frees no slot; its successor is in the same one", async () => {
    const { store, elapse } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    const [first] = await enqueue(store, queue, 2);
    const zombie = await admitOne(store, queue, { claimant: claimant(undefined, { reactor: "recovery", ...brief }) });
    await elapse(pastBrief);
    const found = await admit(store, queue);
    assert.deepEqual(
      found.map(({ id }) => id),
      [first],
      "taken over, and nothing else starts",
    );
    assert.equal(found[0]!.term.reason, "recovery");
    assert.equal(found[0]!.term.queue, queue);
    await zombie.refused("TAPE_FENCED", step(0));
    await zombie.refused("TAPE_FENCED", ended("COMPLETED", { outcome: 1 }));
    assert.deepEqual(await countsOf(store, queue), [1, 1], "the zombie's end returns no slot");
    await found[0]!.write(ended("COMPLETED", { outcome: 1 }));
    assert.deepEqual(await countsOf(store, queue), [0, 1]);
    await assertProjected(store);
  });

  it("a run that is drained or retried keeps its slot", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    const [first] = await enqueue(store, queue, 2);
    const run = await admitOne(store, queue);
    await run.release(0, { reason: "drained", nextReactor: "recovery" });
    assert.deepEqual(await stateOf(store, first!), ["HELD", "RUNNABLE"]);
    const again = await admitOne(store, queue);
    assert.deepEqual([again.id, again.term.reason], [first, "wake"]);
    await assertProjected(store);
  });

  it("a stuck run gives up its slot, and a redrive returns it to the queue", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    const [first, second] = await enqueue(store, queue, 2);
    const run = await admitOne(store, queue);
    await run.write(record("run.stuck", { reason: "r" }), record("term.ended", { reason: "released", notesTaken: 0 }));
    assert.deepEqual(await stateOf(store, first!), ["PARKED", "STUCK"]);
    const other = await admitOne(store, queue);
    assert.equal(other.id, second);
    const manual = request(
      { run: first! },
      { reason: "manual", claimant: claimant(undefined, lasting), ...preempting },
    );
    const term = await acquired(store, manual);
    const redriven = [
      record("run.unstuck", { to: "LIVE" }),
      record("term.ended", { reason: "released", notesTaken: 0, nextReactor: "recovery" }),
    ];
    await store.fenced.append(term.fence, { after: term.head, records: redriven });
    assert.deepEqual(await stateOf(store, first!), ["QUEUED", "QUEUED"]);
    await other.write(ended("COMPLETED", { outcome: 1 }));
    assert.equal((await admitOne(store, queue)).id, first);
    await assertProjected(store);
  });

  it("a run that is cancelled before it has run leaves the queue at once", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    const [first, second, third] = await enqueue(store, queue, 3);
    const run = await admitOne(store, queue);
    await store.intake.cancel(tenant, second!, { reason: "r" });
    const [slot, status] = await stateOf(store, second!);
    assert.equal(slot, "out");
    assert.deepEqual(await countsOf(store, queue), [1, 1]);
    if (status !== "CANCELLED") {
      // A server ends a run that never started. A store leaves it to recovery, which needs no slot.
      const [found] = await store.claim.find(findRequest({ tenant, workflows: ["w"] }));
      assert.deepEqual([found?.name, status], [second, "RUNNABLE"]);
      const records = [ended("CANCELLED", { outcome: 1, notesTaken: 1 })];
      await store.fenced.append(found!.fence, { after: 2, records });
    }
    await store.intake.cancel(tenant, first!, { reason: "r" });
    assert.deepEqual(await stateOf(store, first!), ["HELD", "RUNNING"], "a running one keeps its slot until it ends");
    await run.write(record("notes.taken", { through: 1 }), ended("CANCELLED", { outcome: 1, notesTaken: 1 }));
    assert.equal((await admitOne(store, queue)).id, third);
    await assertProjected(store);
  });

  it("a parked run that is cancelled returns to the queue: its code cleans up", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    const [first] = await enqueue(store, queue, 1);
    await (await admitOne(store, queue)).release();
    await store.intake.cancel(tenant, first!, { reason: "r" });
    assert.deepEqual(await stateOf(store, first!), ["QUEUED", "QUEUED"]);
    assert.equal((await admitOne(store, queue)).id, first);
    await assertProjected(store);
  });

  it("an operator may take a waiting run over; it stays in the queue, and blocks its key meanwhile", async () => {
    const { store, elapse } = fresh();
    const queue = await newQueue(store);
    const [first, second] = await enqueue(store, queue, 2);
    const refusedTake = await store.claim.acquire(tenant, request({ run: first! }));
    assert.ok(!refusedTake.ok && refusedTake.error.code === "TAPE_LEASE_HELD");
    const manual = request({ run: first! }, { reason: "manual", claimant: claimant(undefined, lasting) });
    const term = await acquired(store, manual);
    assert.deepEqual(await admit(store, queue), [], "no run passes the first one");
    const released = record("term.ended", { reason: "manual", notesTaken: 0, nextReactor: "recovery" });
    await store.fenced.append(term.fence, { after: term.head, records: [released] });
    assert.deepEqual(await stateOf(store, first!), ["QUEUED", "QUEUED"]);
    await acquired(store, request({ run: first! }, { reason: "manual", claimant: claimant(undefined, brief) }));
    await elapse(pastBrief);
    const found = await admit(store, queue);
    assert.deepEqual(
      found.map(({ id }) => id),
      [first, second],
      "an operator who vanished blocks nothing",
    );
    assert.equal(found[0]!.term.reason, "recovery");
    await assertProjected(store);
  });

  it("a parked run whose operator vanished returns to its queue", async () => {
    const { store, elapse } = fresh();
    const queue = await newQueue(store);
    const [first] = await enqueue(store, queue, 1);
    await (await admitOne(store, queue)).release();
    const vanishing = claimant(undefined, { reactor: "recovery", ...brief });
    await acquired(store, request({ run: first! }, { reason: "manual", claimant: vanishing }));
    await elapse(pastBrief);
    assert.deepEqual(await store.claim.find(findRequest({ tenant, workflows: ["w"] })), []);
    assert.deepEqual(await stateOf(store, first!), ["QUEUED", "QUEUED"]);
    assert.equal((await admitOne(store, queue)).id, first);
    await assertProjected(store);
  });

  it("a fork waits in its queue after its creator has written what it keeps", async () => {
    const { store } = fresh();
    const queue = await newQueue(store);
    const [source] = await enqueue(store, queue, 1);
    const run = await admitOne(store, queue);
    const fork = { journal: run.journal, pos: 0, through: 1, by: "ann", reason: "r", seeds: [] };
    const forked = spec({ id: unique("fork"), queue, forkedFrom: source!, fork });
    const first = { ...claimant(undefined, lasting), nonce: nonce() };
    const [created] = await store.intake.createRuns(tenant, [forked], first);
    assert.ok(created?.ok && created.term !== undefined, "its creator holds it");
    const released = record("term.ended", { reason: "released", notesTaken: 0, nextReactor: "recovery" });
    await store.fenced.append(created.term.fence, { after: 1, records: [released] });
    assert.deepEqual(await stateOf(store, forked.id), ["QUEUED", "QUEUED"]);
    assert.equal((await admitOne(store, queue)).id, forked.id);
    await assertProjected(store);
  });

  it("after a restore every run keeps its slot", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 2 });
    const ids = await enqueue(store, queue, 3);
    const runs = await admit(store, queue);
    assert.equal(runs.length, 2);
    await store.claim.restored("drill");
    await runs[0]!.refused("TAPE_FENCED", step(0));
    assert.deepEqual(await countsOf(store, queue), [2, 1]);
    const again = await admit(store, queue);
    assert.deepEqual(again.map(({ id }) => id).sort(), ids.slice(0, 2).sort(), "taken over in their slots");
    await assertProjected(store);
  });

  it("a repeated find gets the same runs, and no slot twice", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 3 });
    await enqueue(store, queue, 5);
    const find = findIn(queue, 2);
    const first = await store.claim.find(find);
    const again = await store.claim.find({ ...find, limit: 2 });
    assert.deepEqual(
      again.map(({ fence }) => fence),
      first.map(({ fence }) => fence),
    );
    assert.deepEqual(await countsOf(store, queue), [2, 3]);
  });

  it("a child waits in its queue, and never for a slot that a run above it keeps", async () => {
    const { store } = fresh();
    const started = await newQueue(store, { concurrency: 5, counts: "started" });
    const perKey = await newQueue(store, { perKey: { concurrency: 1 }, counts: "started" });
    const running = await newQueue(store, { concurrency: 1 });
    const child = (pos: number, queue: string, key = "") =>
      record("child.started", {
        ...{ pos, id: unique("child"), workflow: "w", input: 1, inputHash: "h" },
        queue: { name: queue, key, priority: 5 },
      });
    const [first] = await enqueue(store, started, 1);
    const parent = await admitOne(store, started);
    await parent.refused("TAPE_QUEUE_NESTED", child(0, started, "other"));
    await parent.refused("TAPE_QUEUE_UNKNOWN", child(0, "nowhere"));
    await enqueue(store, perKey, 1, { key: "a" });
    const keyed = await admitOne(store, perKey);
    await keyed.refused("TAPE_QUEUE_NESTED", child(0, perKey, "a"));
    await keyed.write(child(0, perKey, "b"));
    assert.equal((await admitOne(store, perKey)).term.queue, perKey);
    await parent.write(child(0, running));
    assert.deepEqual(await stateOf(store, first!), ["HELD", "RUNNING"]);
    assert.equal((await admitOne(store, running)).term.queue, running);
    await assertProjected(store);
  });

  it("another tenant's queue of the same name is another queue", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    await enqueue(store, queue, 1);
    await store.intake.putQueue("other", queue, { counts: "running" });
    assert.deepEqual(await store.claim.find({ ...findIn(queue), tenant: "other" }), []);
    await refused("TAPE_QUEUE_UNKNOWN", store.intake.changeQueue("third", queue, { concurrency: 9 }, audit));
    await refused("TAPE_QUEUE_UNKNOWN", store.read.queueSlots("third", queue));
    assert.equal((await admitOne(store, queue)).term.tenant, tenant);
  });
};

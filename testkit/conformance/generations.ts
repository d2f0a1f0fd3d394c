import { strict as assert } from "node:assert";
import type { NewRecord, RecordData } from "../../src/model/records.ts";
import { acquired, type Cases, claimant, nonce, record, refused, request, step, tenant } from "./frame.ts";
import { begin, confirmed, dispatched, ended, type Holder, hold, intent, settled, unchanged } from "./holder.ts";
import { findRequest, lasting } from "./lease-fixtures.ts";
import { admitOne, assertProjected, enqueue, newQueue, stateOf } from "./queue-fixtures.ts";

/** A million positions for each lane: the first of the next generation. */
const lane = 1_000_000;
const continued = (generation: number, more: Partial<RecordData<"run.continued">> = {}): NewRecord => {
  const next = { generation, pos: (generation - 1) * lane, input: { n: generation }, inputHash: `h${generation}` };
  return record("run.continued", { ...next, notesTaken: 0, notes: [], ...more });
};
const park = (run: Holder, notesTaken = 0) => run.release(notesTaken, { nextReactor: "recovery" });
const signal = ({ store, id }: Holder, value: unknown, name = "go") => store.intake.signal(tenant, id, { name, value });

/** Runs that continue as new: what stays, what is withdrawn, and where the next holder begins to read. */
export const generations: Cases = ({ it }, fresh) => {
  it("every way to a term returns where the run's generation begins", async () => {
    const { store } = fresh();
    const run = await begin(store);
    assert.equal(run.term.begins, undefined);
    await run.write(step(0), continued(2));
    const first = run.head;
    await run.write(step(lane));
    await park(run);
    const taken = await hold(store, run.id);
    assert.equal(taken.term.begins, first);
    const again = request(
      { run: run.id },
      { claimant: claimant("same", lasting), nonce: nonce(), expect: "any", by: "op", auditReason: "r" },
    );
    assert.equal((await acquired(store, again)).begins, first);
    assert.equal((await acquired(store, again)).begins, first, "and its repeat after a lost response");
    const late = await hold(store, run.id, { run: run.id }, { expect: "any", by: "op", auditReason: "r" });
    await late.write(continued(3));
    await park(late);
    const many = await store.claim.find(findRequest({ tenant, workflows: ["w"] }));
    assert.equal(many.find(({ journal }) => journal === run.journal)?.begins, late.head - 1);
    assert.equal((await store.read.lease(tenant, { run: run.id }))?.begins, late.head - 1);
    assert.equal((await store.read.run(tenant, run.id))?.lease.begins, late.head - 1);
    await assertProjected(store);
  });

  it("a run of a queue keeps its slot, and its next term begins with its generation", async () => {
    const { store } = fresh();
    const queue = await newQueue(store, { concurrency: 1 });
    const [first] = await enqueue(store, queue, 2);
    const run = await admitOne(store, queue);
    await run.write(step(0));
    await run.write(continued(2));
    const { head } = run;
    assert.deepEqual(await stateOf(store, first!), ["HELD", "RUNNING"]);
    await run.release(0, { nextReactor: "recovery" });
    const next = await admitOne(store, queue);
    assert.deepEqual([next.id, next.term.begins], [first, head]);
    await assertProjected(store);
  });

  it("it withdraws the gates and timers of its generation, but not the deadline", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const far = 3_600_000;
    const timer = (pos: number, purpose: "sleep" | "deadline" | "redrive") =>
      record("timer.set", { pos, purpose, delayMs: far });
    await run.write(timer(0, "deadline"), timer(0, "sleep"), timer(7, "redrive"));
    await run.write(record("gate.opened", { pos: 1, name: "go", timeoutMs: far }));
    await run.write(continued(2));
    await run.write(record("gate.opened", { pos: lane, name: "go" }), timer(lane + 1, "sleep"));
    const rows = async (): Promise<string[]> => {
      const [gates, timers] = await Promise.all([
        store.read.gates(tenant, { run: run.id }),
        store.read.timers(tenant, { run: run.id }),
      ]);
      const shown = timers.map(({ pos, purpose, status }) => `${purpose} ${pos} ${status}`);
      return [...gates.map(({ pos, status }) => `gate ${pos} ${status}`), ...shown].sort();
    };
    const left = [
      "deadline 0 SET",
      "gate 1 WITHDRAWN",
      "gate_timeout 1 CANCELLED",
      "redrive 7 SET",
      "sleep 0 CANCELLED",
    ];
    assert.deepEqual(await rows(), [...left, `gate ${lane} OPEN`, `sleep ${lane + 1} SET`].sort());
    await run.refused("TAPE_ILLEGAL_TRANSITION", record("gate.resolved", { pos: 1, to: "RECEIVED" }));
    await signal(run, 1);
    await run.write(record("gate.resolved", { pos: lane, to: "RECEIVED", note: 1, value: 1 }));
    await assertProjected(store);
  });

  it("it is refused while an effect of its generation is not settled, and changes nothing then", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(...confirmed(0), intent(1), dispatched(1));
    await unchanged(store, () => run.refused("TAPE_RUN_UNSETTLED", continued(2)));
    await run.write(settled(1, "FAILED", { reason: "definite", error: "e" }), continued(2));
    await run.write(intent(lane));
    await run.refused("TAPE_RUN_UNSETTLED", continued(3));
    await run.write(record("run.decided", { cause: "completed", outcome: 1 }));
    await run.refused("TAPE_RUN_UNSETTLED", continued(3));
    await run.write(ended("COMPLETED"));
    await assertProjected(store);
  });

  it("positions, notes and records of a generation come after those of the earlier ones", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await signal(run, 1);
    await run.write(record("notes.taken", { through: 1 }), continued(2, { notesTaken: 1, notes: [1] }));
    await unchanged(store, async () => {
      await run.refused("TAPE_ILLEGAL_TRANSITION", continued(3, { pos: lane, notesTaken: 1 }));
      await run.refused("TAPE_ILLEGAL_TRANSITION", continued(3, { notesTaken: 0 }));
      await run.refused("TAPE_ILLEGAL_TRANSITION", continued(3, { notesTaken: 2 }));
      await run.refused("TAPE_BAD_INPUT", continued(1));
    });
    const { carriedNotes, publishedNames } = store.limits;
    const notes = Array.from({ length: carriedNotes + 1 }, (_, k) => k + 1);
    const tooMany = await run.refused("TAPE_TOO_LARGE", continued(3, { notesTaken: 1, notes }));
    assert.equal(tooMany.details.limit, "carriedNotes");
    const published = Array.from({ length: publishedNames + 1 }, (_, k) => `n${k}`);
    await run.refused("TAPE_TOO_LARGE", continued(3, { notesTaken: 1, published }));
    await run.write(continued(3, { notesTaken: 1 }));
    await assertProjected(store);
  });

  it("the limit of a journal counts from the record that the writer names", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const { journalRecords } = store.limits;
    const append = (after: number, begins: number) =>
      store.fenced.append(run.term.fence, { after, begins, records: [step(0)] });
    await refused("TAPE_TOO_LARGE", append(journalRecords + 5, 6));
    await refused("TAPE_NOT_HEAD", append(journalRecords + 5, 7));
    for (const begins of [0, -1, 1.5, "2" as never]) await refused("TAPE_BAD_INPUT", append(run.head, begins));
    await refused("TAPE_BAD_INPUT", append(run.head, run.head + 1));
    await run.write(step(0), continued(2));
    await store.fenced.append(run.term.fence, { after: run.head, begins: run.head, records: [step(lane)] });
    await assertProjected(store);
  });

  it("a stale holder cannot begin a generation", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const next = await hold(store, run.id, { run: run.id }, { expect: "any", by: "op", auditReason: "r" });
    await unchanged(store, () => run.refused("TAPE_FENCED", continued(2)));
    await next.write(continued(2));
    await unchanged(store, () => run.refused("TAPE_FENCED", continued(2)));
  });

  it("an append whose response was lost is not written twice", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const entry = { after: run.head, records: [continued(2)] };
    const written = await store.fenced.append(run.term.fence, entry);
    await unchanged(store, async () => assert.deepEqual(await store.fenced.append(run.term.fence, entry), written));
  });
};

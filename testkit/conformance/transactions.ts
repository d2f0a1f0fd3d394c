import { strict as assert } from "node:assert";
import type { NewRecord } from "../../src/model/records.ts";
import type { TransactionOps } from "../../src/store/contract/store.ts";
import { BodyThrew } from "../../src/store/contract/transaction.ts";
import {
  acquired,
  type CallerFixture,
  type Cases,
  forged,
  record,
  refused,
  request,
  type StoreFixture,
  spec,
  step,
  tenant,
  unique,
} from "./frame.ts";
import { begin, unchanged } from "./holder.ts";

interface Caller extends StoreFixture {
  readonly caller: CallerFixture;
  readonly within: TransactionOps;
}

/**
 * Adds a case for stores whose callers can have transactions. Any other store must not claim that it takes part in
 * them.
 */
export function callerCases(
  { it }: Parameters<Cases>[0],
  fresh: () => StoreFixture,
): (title: string, test: (fixture: Caller) => Promise<void>) => void {
  return (title, test) =>
    it(title, async () => {
      const fixture = fresh();
      const { store, caller } = fixture;
      if (caller === undefined) return assert.equal(store.within, undefined);
      assert.ok(store.within !== undefined, "a caller has connections, but the store has no within");
      return test({ ...fixture, caller, within: store.within });
    });
}

const recordAt =
  (pos: number) =>
  (value: unknown): NewRecord =>
    record("step.done", { pos, name: "book", value, transaction: true });

/** Writes inside a transaction of the caller: they commit and roll back with the caller's rows. */
export const transactions: Cases = (api, fresh) => {
  const it = callerCases(api, fresh);
  intakeCases({ it });
  stepCases({ it });
};

interface CaseAdder {
  readonly it: ReturnType<typeof callerCases>;
}

function intakeCases({ it }: CaseAdder): void {
  it("a run and a signal exist once the caller commits, and not before", async ({ store, another, caller, within }) => {
    const other = await another();
    const waiting = await begin(store);
    await waiting.release();
    const own = await caller.connect();
    await own.begin();
    await own.insert("order");
    const started = spec({ labels: { a: "b" } });
    const created = await within.createRun(own.transaction, tenant, started);
    assert.equal(created.fresh, true);
    assert.equal(created.term, undefined);
    const sent = await within.signal(own.transaction, tenant, waiting.id, { name: "go", value: 1 });
    assert.deepEqual(sent, { n: 1, duplicate: false });
    assert.equal(await other.read.run(tenant, started.id), undefined);
    assert.equal((await other.read.journal(tenant, { run: waiting.id }, { inbox: true })).length, 0);
    assert.deepEqual(await caller.rows(), []);
    await own.commit();
    assert.deepEqual(await caller.rows(), ["order"]);
    for (const client of [store, other]) {
      const run = await client.read.run(tenant, started.id);
      assert.equal(run?.status, "RUNNABLE");
      assert.equal(run.journal, created.journal);
      assert.deepEqual(run.labels, { a: "b" });
      assert.equal((await client.read.run(tenant, waiting.id))?.status, "RUNNABLE");
      assert.equal((await client.read.journal(tenant, { run: waiting.id }, { inbox: true })).length, 1);
    }
  });

  it("a rolled back transaction leaves no run, no signal and no number in use", async ({ store, caller, within }) => {
    const waiting = await begin(store);
    await waiting.release();
    const gone = spec();
    const own = await caller.connect();
    await unchanged(store, async () => {
      await own.begin();
      await own.insert("order");
      await within.createRun(own.transaction, tenant, gone);
      await within.signal(own.transaction, tenant, waiting.id, { name: "go", value: 1, key: "k" });
      await own.rollback();
    });
    assert.deepEqual(await caller.rows(), []);
    const [again] = await store.intake.createRuns(tenant, [gone, spec()]);
    assert.equal(again?.ok && again.fresh, true);
    const sent = await store.intake.signal(tenant, waiting.id, { name: "go", value: 1, key: "k" });
    assert.deepEqual(sent, { n: 1, duplicate: false });
  });

  it("repeats find what the same transaction has written", async ({ store, caller, within }) => {
    const waiting = await begin(store);
    const own = await caller.connect();
    const started = spec();
    await own.begin();
    const first = await within.createRun(own.transaction, tenant, started);
    assert.deepEqual(await within.createRun(own.transaction, tenant, started), { ...first, fresh: false });
    const signal = { name: "go", value: 1, key: "k" };
    assert.deepEqual(await within.signal(own.transaction, tenant, waiting.id, signal), { n: 1, duplicate: false });
    assert.deepEqual(await within.signal(own.transaction, tenant, waiting.id, signal), { n: 1, duplicate: true });
    await within.signal(own.transaction, tenant, started.id, { name: "early", value: 2 });
    await own.commit();
    assert.equal((await store.read.journal(tenant, { run: started.id }, { inbox: true })).length, 1);
    await waiting.write(step(0));
    assert.equal((await waiting.write(step(1))).notes, 1);
  });

  it("[INV-5] a rejected call leaves nothing, and the transaction continues", async ({ store, caller, within }) => {
    const taken = spec();
    await store.intake.createRuns(tenant, [taken]);
    const over = await begin(store);
    await over.write(record("run.ended", { status: "COMPLETED", notesTaken: 0, outcome: 1 }));
    const full = await begin(store);
    const own = await caller.connect();
    await own.begin();
    const { transaction } = own;
    const signal = (run: string, value: unknown = 1) => within.signal(transaction, tenant, run, { name: "go", value });
    await refused("TAPE_RUN_CONFLICT", within.createRun(transaction, tenant, { ...taken, input: "other" }));
    await refused("TAPE_RUN_NOT_FOUND", signal(unique("none")));
    await refused("TAPE_RUN_NOT_FOUND", within.signal(transaction, "globex", taken.id, { name: "go", value: 1 }));
    await refused("TAPE_RUN_ENDED", signal(over.id));
    await refused(
      "TAPE_NOT_ENCODABLE",
      signal(full.id, () => {}),
    );
    await refused("TAPE_BAD_INPUT", within.createRun(transaction, tenant, { ...taken, id: "" }));
    await refused("TAPE_TOO_LARGE", within.createRun(transaction, "t".repeat(5_000), taken));
    await own.insert("kept");
    await own.commit();
    assert.deepEqual(await caller.rows(), ["kept"]);
    assert.equal((await full.view()).notes, 0);
  });

  it("a connection without a transaction is refused before anything is written", async ({ store, caller, within }) => {
    const own = await caller.connect();
    const run = spec();
    await unchanged(store, async () => {
      await refused("TAPE_NO_TRANSACTION", within.createRun(own.transaction, tenant, run));
      for (const none of [null, "client", {}, { query: 1 }]) {
        await refused("TAPE_BAD_INPUT", within.createRun(none, tenant, run));
      }
    });
  });

  it("a quota counts a run of the caller's transaction, and forgets one that rolled back", async (fixture) => {
    const { store, caller, within } = fixture;
    await store.intake.setQuota(tenant, { runs: 1 }, { by: "ann", reason: "drill" });
    const own = await caller.connect();
    await own.begin();
    await within.createRun(own.transaction, tenant, spec());
    await refused("TAPE_QUOTA", within.createRun(own.transaction, tenant, spec()));
    await own.rollback();
    await own.begin();
    await within.createRun(own.transaction, tenant, spec());
    await own.commit();
    const [full] = await store.intake.createRuns(tenant, [spec()]);
    assert.equal(full?.ok === false && full.error.code, "TAPE_QUOTA");
  });

  it("[INV-10] a follower of the feed skips nothing of a caller that commits late", async (fixture) => {
    const { store, caller, within } = fixture;
    const own = await caller.connect();
    await own.begin();
    const late = spec();
    await within.createRun(own.transaction, tenant, late);
    const before = await store.read.feed(undefined, 1_000);
    await own.commit();
    const kinds = [];
    let cursor = before.cursor;
    for (let more = true; more; ) {
      const page = await store.read.feed(cursor, 1_000);
      kinds.push(...page.records.map(({ kind, data }) => (kind === "run.created" ? data.id : kind)));
      more = page.records.length > 0;
      cursor = page.cursor;
    }
    assert.ok(kinds.includes(late.id), `the feed has ${kinds.join(", ")}`);
  });
}

function stepCases({ it }: CaseAdder): void {
  it("the rows of a step and its record commit together", async ({ store, caller, within }) => {
    const run = await begin(store);
    const transaction = within.step(caller.source, insertion(caller, "booked"));
    await transaction.execute();
    assert.deepEqual(await caller.rows(), []);
    const done = await transaction.commit(run.term.fence, run.head, recordAt(0));
    assert.deepEqual(done, { head: 2, notes: 0 });
    run.head = done.head;
    assert.deepEqual(await caller.rows(), ["booked"]);
    const [, stored] = await store.read.journal(tenant, { run: run.id });
    assert.equal(stored?.token, run.term.fence.token);
    assert.deepEqual(stored.data, { pos: 0, name: "book", value: "result of booked", transaction: true });
    // The store's own view of the journal continues behind it.
    assert.equal((await run.write(step(1))).head, 3);
  });

  it("[INV-2] a stale owner's step is refused with all its rows", async ({ store, caller, within }) => {
    const run = await begin(store);
    const zombie = within.step(caller.source, insertion(caller, "late"));
    await zombie.execute();
    const by = { expect: "any", by: "ann", auditReason: "it hangs" } as const;
    const successor = await acquired(store, request({ run: run.id }, by));
    await unchanged(store, () => refused("TAPE_FENCED", zombie.commit(run.term.fence, run.head, recordAt(0))));
    for (const fence of [
      forged(successor, { token: successor.fence.token + 1n }),
      forged(successor, { nonce: 7n }),
      forged(successor, { tenant: "globex" }),
    ]) {
      const forger = within.step(caller.source, insertion(caller, "forged"));
      await forger.execute();
      await refused("TAPE_FENCED", forger.commit(fence, successor.head, recordAt(0)));
    }
    assert.deepEqual(await caller.rows(), []);
    const rightful = within.step(caller.source, insertion(caller, "once"));
    await rightful.execute();
    await rightful.commit(successor.fence, successor.head, recordAt(0));
    assert.deepEqual(await caller.rows(), ["once"]);
  });

  it("[INV-1] a step behind the head is refused, also if its record is there already", async (fixture) => {
    const { store, caller, within } = fixture;
    const run = await begin(store);
    for (const after of [run.head, run.head]) {
      const again = within.step(caller.source, insertion(caller, "row"));
      await again.execute();
      const committing = again.commit(run.term.fence, after, recordAt(0));
      if (run.head === 1) run.head = (await committing).head;
      else await refused("TAPE_NOT_HEAD", committing);
    }
    assert.deepEqual(await caller.rows(), ["row"]);
  });

  it("a body that throws, and a record that is rejected, leave no row", async ({ store, caller, within }) => {
    const run = await begin(store);
    const failing = within.step(caller.source, (client) => {
      const inserted = caller.insert(client, "lost");
      const fail = (): never => {
        throw new Error("no seat");
      };
      return inserted instanceof Promise ? inserted.then(fail) : fail();
    });
    const work = failing.execute().then(() => failing.commit(run.term.fence, run.head, recordAt(0)));
    await assert.rejects(work, (error) => error instanceof BodyThrew && (error.cause as Error).message === "no seat");
    const huge = within.step(caller.source, insertion(caller, "lost"));
    await huge.execute();
    const big = (value: unknown): NewRecord => recordAt(0)({ value, text: "x".repeat(store.limits.payloadBytes) });
    await refused("TAPE_TOO_LARGE", huge.commit(run.term.fence, run.head, big));
    const dropped = within.step(caller.source, insertion(caller, "lost"));
    await dropped.execute();
    await dropped.rollback();
    assert.deepEqual(await caller.rows(), []);
    assert.equal((await run.write(step(0))).head, 2);
  });
}

/** A body that inserts one row, and waits for it if the driver is asynchronous. */
function insertion(caller: CallerFixture, row: string): (client: unknown) => unknown {
  return (client) => {
    const inserted = caller.insert(client, row);
    return inserted instanceof Promise ? inserted.then(() => `result of ${row}`) : `result of ${row}`;
  };
}

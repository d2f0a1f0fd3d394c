import { strict as assert } from "node:assert";
import type { Store } from "../../src/store/contract/store.ts";
import { type Cases, nonce, record, refused, spec, step, tenant } from "./frame.ts";
import { begin, countOutcomes, decided, ended, find, hold, statusOf, unchanged } from "./holder.ts";

const signal = (value: unknown, key?: string) => ({ name: "go", value, ...(key === undefined ? {} : { key }) });

async function inbox(store: Store, run: string): Promise<unknown[]> {
  const notes = await store.read.journal(tenant, { run }, { inbox: true });
  assert.deepEqual(
    notes.map(({ seq, token }) => [seq, token]),
    notes.map((_, k) => [k + 1, 0n]),
  );
  return notes.map(({ kind, data }) => (kind === "signal.sent" ? data.value : kind));
}

/** The inbox: many writers, no lease, no lost note, and no run that stays parked while a note waits. */
export const notes: Cases = ({ it }, fresh) => {
  it("signals are queued in order, also before their gate exists", async () => {
    const { store } = fresh();
    const runSpec = spec();
    await store.intake.createRuns(tenant, [runSpec]);
    const values = [1, { b: 2n }, new Date(3), undefined, null];
    for (const [k, value] of values.entries()) {
      assert.deepEqual(await store.intake.signal(tenant, runSpec.id, signal(value)), { n: k + 1, duplicate: false });
    }
    assert.deepEqual(await inbox(store, runSpec.id), values);
    const page = await store.read.journal(tenant, { run: runSpec.id }, { inbox: true, from: 2, limit: 2 });
    assert.deepEqual(
      page.map(({ seq }) => seq),
      [2, 3],
    );
    const run = await hold(store, runSpec.id);
    assert.equal(run.term.notes, 5);
    assert.equal((await run.view()).notes, 5);
  });

  it("a signal arrives with all its fields", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const full = { name: "approve", value: { ok: true }, key: "k-1", binds: "hash", by: "ann" };
    await store.intake.signal(tenant, run.id, full);
    await store.intake.cancel(tenant, run.id, { reason: "too late", by: "bob" });
    const [sent, cancel] = await store.read.journal(tenant, { run: run.id }, { inbox: true });
    assert.deepEqual([sent?.kind, sent?.data], ["signal.sent", full]);
    assert.deepEqual([cancel?.kind, cancel?.data], ["cancel.requested", { reason: "too late", by: "bob" }]);
  });

  it("a repeated key adds no second signal, also after the run has ended", async () => {
    const { store, another } = fresh();
    const run = await begin(store);
    const other = await begin(store);
    const first = await store.intake.signal(tenant, run.id, signal(1, "k"));
    assert.deepEqual(first, { n: 1, duplicate: false });
    await unchanged(store, async () => {
      assert.deepEqual(await store.intake.signal(tenant, run.id, signal(2, "k")), { n: 1, duplicate: true });
    });
    assert.equal((await store.intake.signal(tenant, run.id, signal(3, "K"))).duplicate, false);
    assert.equal((await store.intake.signal(tenant, other.id, signal(4, "k"))).duplicate, false, "keys are the run's");
    const clients = [store, await another()];
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, k) => clients[k % 2]!.intake.signal(tenant, run.id, signal(k, "raced"))),
    );
    assert.deepEqual(countOutcomes(results.map(({ duplicate }) => duplicate)), { false: 1, true: 9 });
    assert.deepEqual(countOutcomes(results.map(({ n }) => n)), { 3: 10 });
    await run.write(ended("COMPLETED", { outcome: 1, notesTaken: 3 }));
    assert.deepEqual(await store.intake.signal(tenant, run.id, signal(1, "k")), { n: 1, duplicate: true });
    await refused("TAPE_RUN_ENDED", store.intake.signal(tenant, run.id, signal(1, "new")));
  });

  it("a signal to an unknown or foreign run is refused as not found", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await unchanged(store, async () => {
      for (const [of, id] of [
        [tenant, "nobody"],
        ["globex", run.id],
      ] as const) {
        await refused("TAPE_RUN_NOT_FOUND", store.intake.signal(of, id, signal(1)));
        await refused("TAPE_RUN_NOT_FOUND", store.intake.cancel(of, id, { reason: "r" }));
      }
    });
  });

  it("concurrent signals get distinct numbers without gaps", async () => {
    const { store, another } = fresh();
    const run = await begin(store);
    const clients = [store, await another(), await another()];
    const results = await Promise.all(
      Array.from({ length: 60 }, (_, k) => clients[k % 3]!.intake.signal(tenant, run.id, signal(k))),
    );
    assert.deepEqual(
      results.map(({ n }) => n).sort((a, b) => a - b),
      results.map((_, k) => k + 1),
    );
    const values = await inbox(store, run.id);
    for (const [k, { n }] of results.entries()) assert.equal(values[n - 1], k);
  });

  it("a note does not disturb the holder, and every response reports it", async () => {
    const { store } = fresh();
    const run = await begin(store);
    assert.equal((await run.write(step(0))).notes, 0);
    await store.intake.signal(tenant, run.id, signal(1));
    assert.equal(await statusOf(store, run.id), "RUNNING");
    assert.deepEqual(await find(store, "recovery"), []);
    assert.equal((await run.write(step(1))).notes, 1, "a plain append says so");
    const renewed = await store.claim.renew([{ fence: run.term.fence, progress: 0 }]);
    assert.ok(renewed[0]?.ok && renewed[0].notes === 1, "a renewal says so");
    await store.intake.cancel(tenant, run.id, { reason: "stop" });
    assert.equal((await run.write(record("gate.opened", { pos: 2, name: "g" }))).notes, 2, "any append says so");
    assert.equal((await run.write(record("notes.taken", { through: 2 }))).notes, 2);
  });

  it("[INV-8] parking and ending are rejected while a note is untaken", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await store.intake.signal(tenant, run.id, signal(1));
    await store.intake.signal(tenant, run.id, signal(2));
    await unchanged(store, async () => {
      for (const notesTaken of [0, 1, 3]) {
        const park = record("term.ended", { reason: "released", notesTaken });
        await run.refused("TAPE_NOTES_PENDING", step(0), decided("completed"), park);
        await run.refused("TAPE_NOTES_PENDING", step(0), ended("COMPLETED", { notesTaken, outcome: 1 }));
      }
    });
    await run.write(record("notes.taken", { through: 2 }));
    await run.release(2);
    assert.equal(await statusOf(store, run.id), "WAITING");
    const again = await hold(store, run.id);
    await again.write(ended("COMPLETED", { notesTaken: 2, outcome: 1 }));
  });

  it("a note queues a parked run immediately, and once", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.release(0, { nextReactor: "recovery", delayMs: 3_600_000 });
    assert.deepEqual(await find(store, "recovery"), [], "it was released with a delay");
    await store.intake.cancel(tenant, run.id, { reason: "stop" });
    assert.equal(await statusOf(store, run.id), "RUNNABLE");
    const terms = await find(store, "recovery");
    assert.deepEqual(
      terms.map(({ journal, notes: sent }) => [journal, sent]),
      [[run.journal, 1]],
    );
    assert.deepEqual(await find(store, "recovery"), []);
  });

  it("[INV-8] a run is never parked with an untaken note when parking races signals", async () => {
    const { store, another } = fresh();
    const clients = [store, await another()];
    let runs = 0;
    let parked = 0;
    for (let round = 0; round < 6; round++) {
      await Promise.all(
        Array.from({ length: 50 }, async (_, k) => {
          const run = await begin(clients[k % 2]!);
          const sender = clients[(k >> 1) % 2]!;
          const park = () => run.release().then(() => true, refusedByNote);
          const send = () => sender.intake.signal(tenant, run.id, signal(k));
          // The order of the two calls alternates; the store decides which comes first.
          const [sent, parking] = (k >> 2) % 2 === 0 ? [send(), park()] : ([park(), send()].reverse() as Race);
          const [isParked] = await Promise.all([parking, sent]);
          const view = await run.view();
          assert.equal(view.notes, 1, "a signal is never lost");
          assert.equal(view.status, isParked ? "RUNNABLE" : "RUNNING", `run ${run.id} must not sleep on a note`);
          runs++;
          if (isParked) parked++;
        }),
      );
    }
    assert.equal(runs, 300);
    assert.deepEqual(await store.read.runs(tenant, { status: ["WAITING"] }), []);
    const woken = await store.claim.find({
      claimant: { owner: "o", label: "l", reactor: "recovery", ttlMs: 60_000 },
      nextReactor: "recovery",
      staleOf: [],
      limit: 1_000,
      nonce: nonce(),
    });
    assert.equal(woken.length, parked, "each parked one is found");
  });
};

type Race = [Promise<unknown>, Promise<boolean>];

function refusedByNote(error: { code?: string }): boolean {
  assert.equal(error.code, "TAPE_NOTES_PENDING");
  return false;
}

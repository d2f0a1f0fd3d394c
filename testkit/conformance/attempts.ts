import { strict as assert } from "node:assert";
import type { NewRecord, RecordData } from "../../src/model/records.ts";
import { acquired, type Cases, claimant, heldRun, record, refused, request, spec, step, tenant } from "./frame.ts";
import { begin, decided, Holder, lasting, unchanged } from "./holder.ts";
import { findRequest, leaseOf, notRenewed, renewed } from "./lease-fixtures.ts";

/** Due before any case ends, also on a store with real time. */
const soon = 20;
const pastSoon = 50;
const far = 3_600_000;

const failed = (pos: number, attempt: number, more: Partial<RecordData<"step.failed">> = {}): NewRecord =>
  record("step.failed", { pos, name: "rate", attempt, error: "429", delayMs: soon, ...more });
const deadline = (delayMs: number): NewRecord => record("timer.set", { pos: 0, purpose: "deadline", delayMs });
const deadlineOf = (run: Holder) => ({ run: run.journal, pos: 0, purpose: "deadline" });

/** Failed attempts of steps, limits on stalls, and deadlines. */
export const attempts: Cases = ({ it }, fresh) => {
  it("a failed attempt sets a timer of its own if it says so, and otherwise nothing", async () => {
    const { store, elapse } = fresh();
    const run = await begin(store);
    await run.write(failed(0, 1), failed(0, 2, { timer: true }), failed(0, 3, { timer: true, delayMs: far }), step(1));
    const timers = async (): Promise<string[]> =>
      (await store.read.timers(tenant, { run: run.id })).map((t) => `${t.pos} ${t.purpose} ${t.status}`).sort();
    assert.deepEqual(await timers(), ["0 retry 2 SET", "0 retry 3 SET"]);
    await unchanged(store, () => run.refused("TAPE_ILLEGAL_TRANSITION", step(2), failed(0, 2, { timer: true })));
    await run.release();
    await unchanged(store, async () => {
      const early = { run: run.journal, pos: 0, purpose: "retry 3" };
      assert.equal(await store.intake.fireTimer(tenant, early), false, "early");
    });
    await elapse(pastSoon);
    assert.equal(await store.intake.fireTimer(tenant, { run: run.journal, pos: 0, purpose: "retry 2" }), true);
    const [note] = await store.read.journal(tenant, { run: run.id }, { inbox: true });
    assert.deepEqual([note?.kind, note?.data], ["timer.fired", { pos: 0, purpose: "retry 2" }]);
    assert.equal((await run.view()).status, "RUNNABLE");
  });

  it("a run with a limit on stalls keeps it in every later term", async () => {
    const { store, elapse } = fresh();
    const run = await heldRun(store, { maxStallMs: 100 }, claimant(undefined, lasting));
    const [waiting] = await store.intake.createRuns(tenant, [spec({ maxStallMs: 70_000 })]);
    assert.ok(waiting?.ok);
    assert.equal((await leaseOf(store, { journal: waiting.journal })).maxStallMs, 70_000);
    assert.equal((await leaseOf(store, { run: run.id })).maxStallMs, 100);
    await renewed(store, run, 1);
    await elapse(130);
    await notRenewed("TAPE_LEASE_STALLED", store, run, 1);
    const successor = (await store.claim.find(findRequest({ tenant }))).find(({ journal }) => journal === run.journal);
    assert.equal(successor?.reason, "stalled");
    assert.equal((await leaseOf(store, { run: run.id })).maxStallMs, 100);
    assert.equal((await leaseOf(store, { journal: waiting.journal })).maxStallMs, 70_000, "found and taken");
    await refused("TAPE_FENCED", store.fenced.append(run.fence, { after: 1, records: [step(0)] }));
    await elapse(130);
    await notRenewed("TAPE_LEASE_STALLED", store, successor!, 0);
    const third = await acquired(store, request({ run: run.id }, { claimant: claimant(undefined, lasting) }));
    assert.equal(third.reason, "stalled");
    await new Holder(store, third, run.id).write(record("run.limited", { maxStallMs: 80_000 }));
    await elapse(130);
    await renewed(store, third, 0);
    assert.equal((await leaseOf(store, { run: run.id })).maxStallMs, 80_000);
  });

  it("a run that stalled is left to other processes for a while", async () => {
    const { store, elapse } = fresh();
    const wedged = claimant(undefined, { reactor: "recovery", ...lasting });
    const run = await heldRun(store, { maxStallMs: 100 }, wedged);
    await elapse(130);
    await notRenewed("TAPE_LEASE_STALLED", store, run, 0);
    const mine = (terms: readonly { readonly journal: number }[]) => terms.filter((one) => one.journal === run.journal);
    assert.deepEqual(mine(await store.claim.find(findRequest({ tenant, claimant: wedged }))), []);
    const [successor] = mine(await store.claim.find(findRequest({ tenant })));
    assert.ok(successor !== undefined, "another process finds it");
  });

  it("a child has the limit of its workflow, and an item none of its run's", async () => {
    const { store } = fresh();
    const run = await begin(store, { maxStallMs: 90_000 });
    const child = { pos: 0, id: `${run.id}.0`, workflow: "w", input: 1, inputHash: "h" };
    await run.write(
      record("child.started", { ...child, maxStallMs: 50_000 }),
      record("child.started", { ...child, pos: 1, id: `${run.id}.1` }),
    );
    const limits = await Promise.all([0, 1].map((pos) => leaseOf(store, { run: `${run.id}.${pos}` })));
    assert.deepEqual(
      limits.map(({ maxStallMs }) => maxStallMs),
      [50_000, null],
    );
  });

  it("progress counts from when it was made, not from when it was reported", async () => {
    const { store, elapse } = fresh();
    const run = await heldRun(store, { maxStallMs: 200 }, claimant(undefined, lasting));
    await elapse(150);
    const [verdict] = await store.claim.renew([{ fence: run.fence, progress: 1, progressAgoMs: 120 }]);
    assert.ok(verdict?.ok);
    const { progressAgoMs } = await leaseOf(store, { run: run.id });
    assert.ok(progressAgoMs >= 119, String(progressAgoMs));
    await elapse(120);
    await notRenewed("TAPE_LEASE_STALLED", store, run, 1);
    for (const bad of [-1, 0.5, Number.NaN]) {
      await refused("TAPE_BAD_INPUT", store.claim.renew([{ fence: run.fence, progress: 2, progressAgoMs: bad }]));
    }
  });

  it("a deadline that passes requests the cancellation in the transaction that fires it", async () => {
    const { store, elapse } = fresh();
    const run = await begin(store, { deadlineMs: soon });
    await run.write(deadline(soon));
    await unchanged(store, () => run.refused("TAPE_ILLEGAL_TRANSITION", deadline(far)));
    await run.release();
    await elapse(pastSoon);
    assert.equal(await store.intake.fireTimer(tenant, deadlineOf(run)), true);
    const inbox = await store.read.journal(tenant, { run: run.id }, { inbox: true });
    assert.deepEqual(
      inbox.map(({ kind, data }) => [kind, data]),
      [["cancel.requested", { reason: "deadline", by: "timers", deadline: true }]],
    );
    assert.equal((await run.view()).status, "RUNNABLE");
    await unchanged(store, async () => {
      assert.equal(await store.intake.fireTimer(tenant, deadlineOf(run)), false, "once");
      const forged = { reason: "deadline", by: "timers", deadline: true };
      await refused("TAPE_BAD_INPUT", store.intake.cancel(tenant, run.id, forged));
    });
  });

  it("the decision on a run's outcome cancels its deadline and its retries", async () => {
    const { store, elapse } = fresh();
    const run = await begin(store);
    await run.write(deadline(soon), failed(0, 1, { timer: true }), decided("failed"));
    const rows = await store.read.timers(tenant, { run: run.id });
    assert.deepEqual(
      rows.map(({ status }) => status),
      ["CANCELLED", "CANCELLED"],
    );
    await elapse(pastSoon);
    assert.equal(await store.intake.fireTimer(tenant, deadlineOf(run)), false);
  });

  it("limits that are no positive whole number are refused, and no run is created", async () => {
    const { store } = fresh();
    await unchanged(store, async () => {
      for (const bad of [0, -1, 0.5, Number.NaN, "5m"]) {
        for (const field of ["maxStallMs", "deadlineMs"]) {
          const [verdict] = await store.intake.createRuns(tenant, [spec({ [field]: bad } as object)]);
          assert.ok(verdict?.ok === false && verdict.error.code === "TAPE_BAD_INPUT", `${field} ${bad}`);
        }
      }
    });
  });
};

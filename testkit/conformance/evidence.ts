import { strict as assert } from "node:assert";
import { type Cases, record, refused, tenant } from "./frame.ts";
import { begin, dispatched, find, Holder, holdItem, intent, settled, statusOf, unchanged } from "./scenes.ts";

/** What a fenced-out owner still knows: it may say so, and whoever decides now is woken to hear it. */
export const evidence: Cases = ({ it }, fresh) => {
  it("late evidence needs token and nonce of the attempt, and wakes whoever decides", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0), dispatched(0), settled(0, "UNKNOWN", { reason: "lease_lost" }));
    const { attemptToken, item } = await run.effect(0);
    const attempt = run.attempt(0);
    assert.equal(attempt.token, attemptToken);
    const evidence = { happened: true, value: { id: 5n } };
    await unchanged(store, async () => {
      for (const wrong of [
        { token: attempt.token + 1n },
        { nonce: attempt.nonce + 1n },
        { pos: 1 },
        { sub: 1 },
        { run: item! },
      ]) {
        await refused("TAPE_FENCED", store.intake.leaveEvidence(tenant, { ...attempt, ...wrong }, evidence));
      }
    });
    const reconciler = await holdItem(store, run.id, 0);
    await reconciler.release();
    assert.deepEqual(await find(store, "reconciler"), []);
    assert.deepEqual(await store.intake.leaveEvidence(tenant, attempt, evidence), { journal: item, n: 1 });
    assert.equal((await run.effect(0)).status, "UNKNOWN", "evidence is not a verdict");
    const [note] = await store.read.journal(tenant, { journal: item! }, { inbox: true });
    const expected = { run: run.journal, pos: 0, sub: 0, attempt: 1, token: String(attempt.token), ...evidence };
    assert.deepEqual([note?.kind, note?.data], ["effect.evidence", expected]);
    assert.equal((await run.view()).notes, 0);
    const [term] = await find(store, "reconciler");
    assert.deepEqual([term?.journal, term?.notes], [item, 1]);
    // A note waits in an item's inbox as in a run's: the term does not end over it.
    const heir = new Holder(store, term!, run.id);
    await heir.refused("TAPE_NOTES_PENDING", record("term.ended", { reason: "released", notesTaken: 0 }));
    await heir.write(record("notes.taken", { through: 1 }));
    await heir.release(1);
  });

  it("evidence about an inline attempt goes to the run while the run decides", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0), dispatched(0));
    await run.release(0);
    const answer = await store.intake.leaveEvidence(tenant, run.attempt(0), { happened: false });
    assert.deepEqual(answer, { journal: run.journal, n: 1 });
    assert.equal(await statusOf(store, run.id), "RUNNABLE");
  });

  it("evidence that meets the hand-over reaches whoever decides afterwards: in its own inbox, or before it in the run's", async () => {
    const { store, another } = fresh();
    const second = await another();
    for (let k = 0; k < 20; k++) {
      const run = await begin(store);
      await run.write(intent(0), dispatched(0));
      const attempt = run.attempt(0);
      const handing = run.write(settled(0, "UNKNOWN", { reason: "lease_lost" })).then(async () => {
        const { item } = await run.effect(0);
        const own = await store.read.journal(tenant, { run: run.id }, { inbox: true });
        return { item, before: own.length };
      });
      const told = await second.intake.leaveEvidence(tenant, attempt, { happened: true });
      const { item, before } = await handing;
      // Not in the run's inbox when the new authority began: then it was told itself, or will be.
      if (before === 0) assert.equal(told.journal, item);
    }
  });

  it("an item that already waits for its reactor goes on waiting for that one", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0, { dispatch: "outbox", semantics: "idempotent" }));
    const outbox = await holdItem(store, run.id, 0);
    await outbox.write(
      dispatched(0, { run: run.journal }),
      settled(0, "PENDING", { run: run.journal, reason: "ack_lost" }),
    );
    await outbox.release(0, { nextReactor: "outbox" });
    await store.intake.leaveEvidence(tenant, outbox.attempt(0), { happened: true });
    assert.deepEqual(await find(store, "reconciler"), []);
    assert.equal((await find(store, "outbox")).length, 1);
  });
};

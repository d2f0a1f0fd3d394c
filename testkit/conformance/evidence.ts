import { strict as assert } from "node:assert";
import { type Cases, record, refused, tenant } from "./frame.ts";
import { begin, dispatched, find, Holder, holdItem, intent, settled, statusOf, unchanged } from "./holder.ts";

/** Late evidence of a fenced owner: it is recorded, and the current authority is woken. */
export const evidence: Cases = ({ it }, fresh) => {
  it("late evidence needs the attempt's token and nonce, and wakes the authority", async () => {
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
    // An item's inbox works like a run's: the term cannot end while a note is untaken.
    const successor = new Holder(store, term!, run.id);
    await successor.refused("TAPE_NOTES_PENDING", record("term.ended", { reason: "released", notesTaken: 0 }));
    await successor.write(record("notes.taken", { through: 1 }));
    await successor.release(1);
  });

  it("evidence of an attempt that was taken for absent is accepted by its token", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0, { semantics: "non_idempotent" }), dispatched(0));
    await run.write(settled(0, "UNKNOWN", { reason: "ack_lost" }));
    const early = run.attempt(0);
    const { item } = await run.effect(0);
    const holder = await holdItem(store, run.id, 0);
    const absent = { attempt: 1, token: String(early.token) };
    const again = settled(0, "PENDING", { run: run.journal, reason: "ABSENT", absent });
    await holder.write(again, dispatched(0, { run: run.journal, attempt: 2 }));
    await unchanged(store, () =>
      refused(
        "TAPE_FENCED",
        store.intake.leaveEvidence(tenant, { ...early, token: early.token + 9n }, { happened: true }),
      ),
    );
    const left = await store.intake.leaveEvidence(tenant, early, { happened: true, value: "late" });
    assert.deepEqual(left, { journal: item, n: 1 });
    const [note] = await store.read.journal(tenant, { journal: item! }, { inbox: true });
    const { attempt, token, value } = note!.data as { attempt: number; token: string; value: unknown };
    assert.deepEqual([note!.kind, attempt, token, value], ["effect.evidence", 1, String(early.token), "late"]);
  });

  it("evidence of an inline attempt goes to the run while it has the authority", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0), dispatched(0));
    await run.release(0);
    const result = await store.intake.leaveEvidence(tenant, run.attempt(0), { happened: false });
    assert.deepEqual(result, { journal: run.journal, n: 1 });
    assert.equal(await statusOf(store, run.id), "RUNNABLE");
  });

  it("evidence that races a change of authority reaches the new authority", async () => {
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
      const note = await second.intake.leaveEvidence(tenant, attempt, { happened: true });
      const { item, before } = await handing;
      // Not in the run's inbox when the new authority starts: then the item gets the note itself.
      if (before === 0) assert.equal(note.journal, item);
    }
  });

  it("a note does not change the reactor that an item waits for", async () => {
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

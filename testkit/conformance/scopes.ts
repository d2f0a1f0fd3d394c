import { strict as assert } from "node:assert";
import { type Cases, record, step, tenant, unique } from "./frame.ts";
import { armed, begin, childEnded, confirmed, ended, intent, startChild, unchanged } from "./holder.ts";

/** Scopes: their timers, what their end withdraws, and what a failed saga owes. */
export const scopes: Cases = ({ it }, fresh) => {
  it("a scope with a time-out has a timer, which its end cancels", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(record("scope.opened", { pos: 0, name: "timeout", timeoutMs: 60_000 }));
    const timers = async () =>
      (await store.read.timers(tenant, { run: run.id })).map(({ pos, purpose, status }) => [pos, purpose, status]);
    assert.deepEqual(await timers(), [[0, "scope", "SET"]]);
    await run.write(
      record("scope.closed", { pos: 1, of: 0, reason: "done", timers: [{ pos: 0, purpose: "scope" }] }),
      record("scope.opened", { pos: 0, name: "timeout", timeoutMs: 5, again: 1 }),
    );
    assert.deepEqual(
      (await timers()).sort(),
      [
        [0, "scope", "CANCELLED"],
        [0, "scope 1", "SET"],
      ].sort(),
    );
  });

  it("a run with the timer of a scope does not end in one record", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(record("scope.opened", { pos: 0, name: "timeout", timeoutMs: 60_000 }));
    await unchanged(store, () => run.refused("TAPE_RUN_UNSETTLED", ended("COMPLETED", { outcome: 1 })));
  });

  it("the end of a scope withdraws the gates and timers that it names, and no other", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(
      record("scope.opened", { pos: 0, name: "scope" }),
      record("gate.opened", { pos: 1, name: "inside", timeoutMs: 60_000 }),
      record("gate.opened", { pos: 2, name: "outside" }),
      record("timer.set", { pos: 3, purpose: "sleep", delayMs: 60_000 }),
    );
    const timers = [{ pos: 3, purpose: "sleep" }];
    await run.write(
      record("scope.closed", { pos: 4, of: 0, reason: "cancelled", detail: "enough", gates: [1], timers }),
    );
    const gates = await store.read.gates(tenant, { run: run.id });
    assert.deepEqual(
      gates.map(({ pos, status }) => [pos, status]),
      [
        [1, "WITHDRAWN"],
        [2, "OPEN"],
      ],
    );
    const left = await store.read.timers(tenant, { run: run.id });
    assert.ok(left.every(({ status }) => status === "CANCELLED"));
    const again = record("scope.closed", { pos: 5, of: 0, reason: "done", gates: [1] });
    await unchanged(store, () => run.refused("TAPE_ILLEGAL_TRANSITION", again));
  });

  it("an effect that was not sent is withdrawn, frees its business key, and needs no reactor", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const key = unique("key");
    await run.write(intent(0, { dispatch: "outbox", businessKey: key }), intent(1, { dispatch: "outbox" }));
    await run.write(record("effect.withdrawn", { pos: 0 }));
    const [withdrawn, other] = await store.read.effects(tenant, { run: run.id });
    assert.deepEqual([withdrawn?.status, other?.status], ["WITHDRAWN", "PENDING"]);
    assert.equal((await store.read.lease(tenant, { journal: withdrawn!.item! }))?.nextReactor ?? null, null);
    assert.equal((await store.read.lease(tenant, { journal: other!.item! }))?.nextReactor, "outbox");
    await run.write(intent(2, { dispatch: "outbox", businessKey: key }));
  });

  it("an effect that was sent, or may have been, is not withdrawn", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(
      intent(0, { dispatch: "inline" }),
      record("effect.dispatched", { pos: 0, attempt: 1, sendWithinMs: 5 }),
    );
    const withdraw = record("effect.withdrawn", { pos: 0 });
    await unchanged(store, () => run.refused("TAPE_ILLEGAL_TRANSITION", withdraw));
    await run.write(record("effect.settled", { pos: 0, to: "CONFIRMED", reason: "returned" }));
    await unchanged(store, () => run.refused("TAPE_ILLEGAL_TRANSITION", step(1), withdraw));
  });

  it("obligations of one child fall due, and those of its siblings and parent stay armed", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(...confirmed(0), armed(0));
    const children = [await startChild(run, 1, unique("child")), await startChild(run, 2, unique("child"))];
    for (const [k, child] of children.entries()) {
      const below = await startChild(child, 5, unique("grandchild"));
      for (const one of [below, child]) await one.write(...confirmed(0), armed(0));
      await childEnded(below, child, 5, "COMPLETED", { outcome: 1 });
      await child.write(record("notes.taken", { through: 1 }));
      await childEnded(child, run, k + 1, "COMPLETED", { outcome: 1, notesTaken: 1 });
    }
    await run.write(record("children.due", { pos: 1, reason: "the saga has failed" }));
    const rows = await store.read.effects(tenant, { root: run.journal, role: "compensation" });
    const count = (status: string): number => rows.filter((row) => row.status === status).length;
    assert.deepEqual([count("PENDING"), count("ARMED")], [2, 3]);
  });
};

import { strict as assert } from "node:assert";
import type { NewRecord, RecordData, RecordKind } from "../../src/model/records.ts";
import { type Cases, claimant, record, refused, request, step, tenant, unique } from "./frame.ts";
import { begin, Holder, holdItem, intent, lasting, unchanged } from "./holder.ts";

/** One valid record of every kind; a new kind does not compile without its sample here. */
export const samples: { readonly [K in RecordKind]: RecordData<K> } = {
  "run.created": { id: "r", workflow: "w", input: 1, inputHash: "h" },
  "run.continued": { generation: 2, pos: 1_000_000, input: 1, inputHash: "h", notesTaken: 0, notes: [] },
  "run.decided": { cause: "failed", outcome: 1 },
  "run.compensating": {},
  "run.ended": { status: "COMPLETED", notesTaken: 0, outcome: 1 },
  "run.stuck": { reason: "w" },
  "run.unstuck": { to: "LIVE" },
  "run.retried": { attempt: 1, error: "e", delayMs: 5 },
  "run.limited": { maxStallMs: 60_000 },
  "run.pinned": { build: "b" },
  "run.pruned": { tenant: "t", id: "r", token: "1" },
  "run.erased": { tenant: "t", id: "r" },
  "store.restored": { epoch: 1, reason: "r", ended: 0 },
  "lease.named": { name: "n" },
  "term.started": { owner: "o", label: "l", reactor: "r", ttlMs: 5, reason: "start" },
  "term.ended": { reason: "released", notesTaken: 0 },
  "notes.taken": { through: 0 },
  "step.done": { pos: 0, name: "s", value: 1 },
  "step.failed": { pos: 0, name: "s", attempt: 1, error: "e", delayMs: 5 },
  "decision.made": { pos: 0, name: "d", value: 1, model: "m", usage: { tokens: 5 } },
  "sample.taken": { pos: 0, name: "now", value: 1 },
  "patch.marked": { pos: 0, name: "p" },
  "state.published": { pos: 0, name: "p", value: 1 },
  "labels.set": { pos: 0, set: { stage: "paid" }, unset: [] },
  "reply.sent": { pos: 0, value: 1 },
  "lane.opened": { lane: 1, name: "/l" },
  "race.won": { pos: 0, winner: 1 },
  "child.started": { pos: 0, id: "misplaced-child", workflow: "w", input: 1, inputHash: "h" },
  "child.settled": { pos: 0, id: "c", status: "COMPLETED" },
  "effect.intended": {
    pos: 0,
    name: "e",
    semantics: "read",
    dispatch: "inline",
    key: "k",
    argsHash: "h",
    args: 1,
  },
  "effect.dispatched": { pos: 0, attempt: 1, sendWithinMs: 5 },
  "effect.settled": { pos: 0, to: "CONFIRMED", reason: "r" },
  "effect.received": { pos: 0, status: "CONFIRMED" },
  "effect.observed": { pos: 0, observation: "absent" },
  "effect.evidence": { pos: 0, attempt: 1, token: "1", happened: true },
  "effect.outcome": { pos: 0, sub: 0, status: "CONFIRMED" },
  "item.opened": { run: 2, pos: 0, sub: 0 },
  "obligation.armed": { pos: 0, sub: 1, name: "u", semantics: "read", key: "k", args: 1 },
  "obligation.due": { pos: 0, sub: 1, reason: "w" },
  "obligation.surplus": { pos: 0, sub: 2, semantics: "read", key: "k", args: 1 },
  "obligation.settled": { pos: 0, sub: 1, to: "COMPENSATED", reason: "r" },
  "gate.opened": { pos: 0, name: "g" },
  "gate.resolved": { pos: 0, to: "RECEIVED" },
  "signal.sent": { name: "s", value: 1 },
  "signal.refused": { name: "s", note: 1, reason: "w" },
  "start.moved": { input: 1, inputHash: "h", waitMs: 1 },
  "cancel.requested": { reason: "r" },
  "sleep.ended": { pos: 0 },
  "child.received": { pos: 1, childPos: 0, status: "COMPLETED" },
  "children.due": { pos: 0, reason: "r" },
  "scope.opened": { pos: 0, name: "scope" },
  "scope.closed": { pos: 1, of: 0, reason: "done" },
  "saga.compensated": { pos: 1, of: 0, obligations: 0 },
  "effect.withdrawn": { pos: 0 },
  "run.suspected": { crashes: 1 },
  "replay.stalled": { attempt: 1, seq: 2, awaited: "step", waitedMs: 5 },
  "timer.set": { pos: 0, purpose: "sleep", delayMs: 5 },
  "timer.fired": { pos: 0, purpose: "sleep" },
  "timer.cancelled": { pos: 0, purpose: "sleep" },
  "budget.reserved": { pos: 0, rootRun: 2, amounts: { usd: 1 } },
  "budget.presumed": { pos: 0, rootRun: 2, amounts: { usd: 1 } },
  "budget.charged": { pos: 0, rootRun: 2, spent: { usd: 1 }, reserved: { usd: 1 } },
  "value.written": { key: "k", version: 1, value: 1 },
  "fork.kept": { records: [{ kind: "step.done", data: { pos: 0, name: "kept", value: 1 } }] },
  "operator.action": { by: "ann", action: "a", reason: "r" },
};

const every = Object.keys(samples) as RecordKind[];
const sample = (kind: RecordKind): NewRecord => record(kind, samples[kind]);

/** Kinds that only the store or other clients write: a holder cannot append them. */
const notForRuns: readonly RecordKind[] = [
  "run.created",
  "run.pruned",
  "run.erased",
  "store.restored",
  "lease.named",
  "term.started",
  "item.opened",
  "child.settled",
  "effect.evidence",
  "effect.outcome",
  "signal.sent",
  "cancel.requested",
  "timer.fired",
];
const forItems: readonly RecordKind[] = [
  "effect.dispatched",
  "effect.settled",
  "effect.observed",
  "obligation.armed",
  "obligation.surplus",
  "obligation.settled",
  "notes.taken",
  "operator.action",
  "term.ended",
];
const forNames: readonly RecordKind[] = ["operator.action", "term.ended"];

async function refuses(holder: Holder, kinds: readonly RecordKind[]): Promise<void> {
  await unchanged(holder.store, async () => {
    for (const kind of kinds) {
      const { details } = await holder.refused("TAPE_RECORD_MISPLACED", sample(kind));
      assert.equal(details.kind, kind);
    }
  });
}

/** Which journal accepts which record. */
export const misplaced: Cases = ({ it }, fresh) => {
  it("a run's journal rejects records that only the store or clients write", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await refuses(run, notForRuns);
    await unchanged(store, () => run.refused("TAPE_RECORD_MISPLACED", step(0), sample("signal.sent"), step(1)));
  });

  it("an item's journal accepts only records about its effect", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(intent(0, { dispatch: "outbox" }));
    const item = await holdItem(store, run.id, 0);
    await refuses(
      item,
      every.filter((kind) => !forItems.includes(kind)),
    );
    await item.write(sample("operator.action"), sample("notes.taken"));
    await item.write(record("effect.observed", { run: run.journal, pos: 0, observation: "inconclusive" }));
  });

  it("a named lease's journal accepts only records about its terms", async () => {
    const { store } = fresh();
    const result = await store.claim.acquire(
      tenant,
      request({ name: unique("lease") }, { claimant: claimant(undefined, lasting) }),
    );
    assert.ok(result.ok);
    const named = new Holder(store, result.term, "none");
    await refuses(
      named,
      every.filter((kind) => !forNames.includes(kind)),
    );
    await named.write(sample("operator.action"), sample("term.ended"));
  });

  it("no client can append to the store's own journal", async () => {
    const { store } = fresh();
    await begin(store);
    for (const whose of [tenant, "globex"]) {
      assert.equal(await store.read.lease(whose, { journal: 1 }), undefined);
      assert.deepEqual(await store.read.journal(whose, { journal: 1 }), []);
      await refused("TAPE_LEASE_NOT_FOUND", store.claim.acquire(whose, request({ journal: 1 })));
    }
  });
};

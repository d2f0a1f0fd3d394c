import { noteKinds, storeKinds } from "../../src/model/kinds.ts";
import { type NewRecord, type RecordKind, recordKinds } from "../../src/model/records.ts";

/** Every kind of record that an owner may write into the journal of its run. */
export const ownerKinds: readonly RecordKind[] = recordKinds.filter(
  (kind) => !noteKinds.has(kind) && !storeKinds.has(kind),
);

const effect = { semantics: "idempotent", args: { amount: 1 }, argsHash: "h" } as const;
const compensation = { semantics: "idempotent", args: {} } as const;

/**
 * One record of each kind, effects in both dispatch modes, in an order that is legal for the rightful owner. So a rejection
 * is never caused by their content.
 */
export const legalRecords = (run: number): readonly NewRecord[] => [
  { kind: "step.done", data: { pos: 10, name: "book", value: "done" } },
  { kind: "decision.made", data: { pos: 11, name: "judge", value: "yes" } },
  { kind: "step.failed", data: { pos: 17, name: "book", attempt: 1, error: "e", delayMs: 5 } },
  { kind: "run.limited", data: { maxStallMs: 60_000 } },
  { kind: "state.published", data: { pos: 18, name: "progress", value: 1 } },
  { kind: "reply.sent", data: { pos: 19, value: 1 } },
  { kind: "labels.set", data: { pos: 9, set: { stage: "paid" }, unset: [] } },
  { kind: "sample.taken", data: { pos: 12, name: "now", value: 1 } },
  { kind: "patch.marked", data: { pos: 13, name: "v2" } },
  { kind: "race.won", data: { pos: 14, winner: 1 } },
  { kind: "lane.opened", data: { lane: 1, name: "north" } },
  { kind: "signal.refused", data: { name: "cfo", note: 1, reason: "test" } },
  { kind: "notes.taken", data: { through: 0 } },
  { kind: "sleep.ended", data: { pos: 15 } },
  { kind: "child.received", data: { pos: 16, childPos: 9, status: "COMPLETED" } },
  { kind: "run.suspected", data: { crashes: 1 } },
  { kind: "replay.stalled", data: { attempt: 1, seq: 2, awaited: "step", waitedMs: 5 } },
  { kind: "run.retried", data: { attempt: 1, error: "e", delayMs: 1 } },
  { kind: "fork.kept", data: { records: [{ kind: "step.done", data: { pos: 0, name: "kept", value: 1 } }] } },
  { kind: "operator.action", data: { by: "ann", action: "check", reason: "test" } },
  { kind: "effect.intended", data: { ...effect, pos: 20, name: "mail", dispatch: "outbox", key: "k-20" } },
  { kind: "effect.intended", data: { ...effect, pos: 21, name: "wire", dispatch: "inline", key: "k-21" } },
  { kind: "effect.dispatched", data: { pos: 21, attempt: 1, sendWithinMs: 1_000 } },
  { kind: "effect.observed", data: { pos: 21, observation: "inconclusive" } },
  { kind: "effect.settled", data: { pos: 21, to: "CONFIRMED", reason: "returned", value: 1 } },
  { kind: "effect.received", data: { pos: 21, status: "CONFIRMED", value: 1 } },
  { kind: "obligation.armed", data: { ...compensation, pos: 21, sub: 1, name: "unwire", key: "k-21-1" } },
  { kind: "gate.opened", data: { pos: 30, name: "approval", timeoutMs: 60_000 } },
  { kind: "gate.resolved", data: { pos: 30, to: "RECEIVED", value: true } },
  { kind: "timer.set", data: { pos: 31, purpose: "sleep", delayMs: 60_000 } },
  { kind: "timer.cancelled", data: { pos: 31, purpose: "sleep" } },
  { kind: "child.started", data: { pos: 32, id: "child", workflow: "w", input: 1, inputHash: "h" } },
  { kind: "budget.reserved", data: { pos: 33, rootRun: run, amounts: { usd: 100 } } },
  { kind: "budget.presumed", data: { pos: 33, rootRun: run, amounts: { usd: 1 } } },
  { kind: "budget.charged", data: { pos: 33, rootRun: run, spent: { usd: 50 }, reserved: { usd: 100 } } },
  { kind: "value.written", data: { key: "balance", version: 1, value: 1 } },
  { kind: "run.stuck", data: { reason: "test" } },
  { kind: "run.unstuck", data: { to: "LIVE" } },
  { kind: "run.decided", data: { cause: "failed", outcome: "no" } },
];

/** Records that need a state in which the others are no longer legal. A stale owner is rejected before that matters. */
export const otherRecords: readonly NewRecord[] = [
  { kind: "obligation.due", data: { pos: 21, sub: 1, reason: "test" } },
  { kind: "obligation.surplus", data: { ...compensation, pos: 21, sub: 2, name: "unwire", key: "k-21-2" } },
  { kind: "obligation.settled", data: { pos: 21, sub: 1, to: "COMPENSATED", reason: "returned" } },
  { kind: "scope.opened", data: { pos: 40, name: "trip" } },
  { kind: "scope.closed", data: { pos: 41, of: 40, reason: "done" } },
  { kind: "effect.withdrawn", data: { pos: 20 } },
  { kind: "children.due", data: { pos: 32, reason: "test" } },
  { kind: "saga.compensated", data: { pos: 42, of: 40, obligations: 1 } },
  { kind: "run.pinned", data: { build: "b2", from: "b1" } },
  {
    kind: "run.continued",
    data: { generation: 2, pos: 2_000_000, input: 1, inputHash: "h", notesTaken: 0, notes: [] },
  },
  { kind: "run.compensating", data: {} },
  { kind: "run.ended", data: { status: "COMPLETED", outcome: 1, notesTaken: 0 } },
  { kind: "term.ended", data: { reason: "released", notesTaken: 0 } },
];

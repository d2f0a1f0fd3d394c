import type { RecordKind } from "./records.ts";

/** Kinds that go only into an inbox, by many writers, without a lease. */
export const noteKinds: ReadonlySet<RecordKind> = new Set([
  "signal.sent",
  "cancel.requested",
  "timer.fired",
  "child.settled",
  "effect.outcome",
  "effect.evidence",
]);
/** Kinds that only the store itself writes: they open a journal, or a term in it. */
export const storeKinds: ReadonlySet<RecordKind> = new Set([
  "run.created",
  "lease.named",
  "item.opened",
  "term.started",
  "run.pruned",
  "store.restored",
]);
/** Kinds for the journal of one effect that a reactor owns by itself. */
export const itemKinds: ReadonlySet<RecordKind> = new Set([
  "effect.dispatched",
  "effect.settled",
  "effect.observed",
  "obligation.armed",
  "obligation.surplus",
  "obligation.settled",
  "notes.taken",
  "operator.action",
  "term.ended",
]);
/** Kinds for the journal of a named lease. */
export const nameKinds: ReadonlySet<RecordKind> = new Set(["term.ended", "operator.action"]);

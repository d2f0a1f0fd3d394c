import type { RecordKind } from "./records.ts";

/** Kinds of notes: many writers send them to an inbox, without a lease. */
export const noteKinds: ReadonlySet<RecordKind> = new Set([
  "signal.sent",
  "cancel.requested",
  "start.moved",
  "timer.fired",
  "child.settled",
  "effect.outcome",
  "effect.evidence",
]);
/** Kinds that only the store writes: they open a journal, or a term in it. */
export const storeKinds: ReadonlySet<RecordKind> = new Set([
  "run.created",
  "lease.named",
  "item.opened",
  "term.started",
  "run.pruned",
  "run.erased",
  "store.restored",
]);
/** Kinds for the journal of an item, which a reactor owns. */
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

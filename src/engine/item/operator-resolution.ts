import type { JournalRecord } from "../../model/records.ts";

/** An operator's resolution of an effect. Empty: none since the effect was last settled. */
export interface OperatorResolution {
  readonly as?: unknown;
  readonly value?: unknown;
}

/** The last operator resolution in an item's journal, unless the effect has been settled since. */
export function operatorResolution(records: readonly JournalRecord[]): OperatorResolution {
  const last = records.findLastIndex(({ kind }) => kind === "effect.settled" || kind === "obligation.settled");
  const action = records.slice(last + 1).findLast(({ kind }) => kind === "operator.action");
  if (action?.kind !== "operator.action" || action.data.action !== "resolve") return {};
  return action.data.detail as OperatorResolution;
}

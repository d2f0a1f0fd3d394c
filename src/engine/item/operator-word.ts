import type { JournalRecord } from "../../model/records.ts";

/** What an operator said of an effect: `as` is the resolution. Empty: nothing since it was last settled. */
export interface OperatorWord {
  readonly as?: unknown;
  readonly value?: unknown;
}

/** The last operator's word in an item's journal, where nothing has settled the effect since. */
export function operatorWord(records: readonly JournalRecord[]): OperatorWord {
  const last = records.findLastIndex(({ kind }) => kind === "effect.settled" || kind === "obligation.settled");
  const acted = records.slice(last + 1).findLast(({ kind }) => kind === "operator.action");
  if (acted?.kind !== "operator.action" || acted.data.action !== "resolve") return {};
  return acted.data.detail as OperatorWord;
}

import { TapeError } from "../../model/errors.ts";
import type { JournalRecord } from "../../model/records.ts";

/** What the end of a scope means for the effects inside it. */

/** Whether an effect had been sent when its scope ended, according to the journal: it has its intent, and no withdrawal. */
export function wasSent(records: readonly JournalRecord[] | undefined, endSeq: number): boolean {
  const before = (kind: string): boolean => records?.some((one) => one.kind === kind && one.seq < endSeq) === true;
  return before("effect.intended") && !before("effect.withdrawn");
}

/** The error says whether the effect was sent: what was not sent never will be, what was may have happened. */
export function effectRefusal(
  { code, message, details }: TapeError,
  { name, pos }: { readonly name: string; readonly pos: number },
  sent: boolean,
): TapeError {
  const what = sent ? `effect ${name} was sent and may happen` : `effect ${name} was not sent`;
  return new TapeError(code, `${message}; ${what}`, { ...details, effect: name, pos, sent });
}

import { TapeError } from "../model/errors.ts";
import type { NewRecord, RecordData } from "../model/records.ts";

/** Which effect a person must decide about. */
export interface EffectPlace {
  readonly run: number;
  readonly pos: number;
  readonly sub: number;
}

export const placeOf = ({ run, pos, sub }: EffectPlace): EffectPlace => ({ run, pos, sub });

export type StuckRecord = RecordData<"run.stuck">;

/** What stopped the run, in words that say what to do; where it is effects, resolving one lets the run go on by itself. */
export function stuckRecord(error: TapeError, on: readonly EffectPlace[] = []): NewRecord {
  const { code, message, details, next } = error;
  const data: StuckRecord = {
    why: message,
    detail: { code, next, ...details },
    ...(on.length === 0 ? {} : { on: [...on] }),
  };
  return { kind: "run.stuck", data };
}

/** An act, or the undoing of one, that only a person can settle. */
export function needsResolving(
  effect: EffectPlace & { readonly name: string | null; readonly reason?: string | null | undefined },
  undoing: boolean,
): TapeError {
  const { pos, sub, name, reason } = effect;
  const what = undoing ? `undoing ${name ?? "a surplus act"}` : `${name}`;
  const how = undoing ? "compensated, or pending to undo it again" : "confirmed or failed, or pending to send it again";
  const message = `nobody knows what became of ${what} at position ${pos} (${reason ?? "in doubt"}): find out on the other side, then resolve it as ${how}`;
  return new TapeError("TAPE_RUN_STUCK", message, { effect: name, pos, sub, reason });
}

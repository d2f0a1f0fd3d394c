import { decode } from "../../base/codec.ts";
import { describeThrown } from "../../base/thrown.ts";
import { TapeError } from "../../model/errors.ts";
import type { NewRecord, RecordData } from "../../model/records.ts";
import type { EffectRef, EffectRow, UnresolvedEffect } from "../../model/rows.ts";

export type StuckRecord = RecordData<"run.stuck">;

/** What stopped the run, in words that say what to do; where it is effects, resolving one lets the run go on by itself. */
export function stuckRecord(error: TapeError, on: readonly EffectRef[] = []): NewRecord {
  const { code, message, details, next } = error;
  const data: StuckRecord = {
    reason: message,
    detail: { code, next, ...details },
    ...(on.length === 0 ? {} : { effects: [...on] }),
  };
  return { kind: "run.stuck", data };
}

export function unresolved(row: EffectRow): UnresolvedEffect {
  const { run, pos, sub, name, reason, outcome } = row;
  const said = outcome === null ? {} : (decode(outcome) as { readonly error?: unknown });
  return { run, pos, sub, name, reason, error: said.error };
}

/** Enough to see what the upstream did not like. */
const maxChars = 300;

/** An act, or the undoing of one, that only a person can settle; with the words that `resolve` takes for it. */
export function unresolvedEffectError(effect: UnresolvedEffect, undoing: boolean): TapeError {
  const { pos, sub, name, reason, error } = effect;
  const what = undoing ? `undoing ${name ?? "a surplus act"}` : `${name}`;
  const said = error === undefined ? "" : `; the last attempt said: ${describeThrown(error).slice(0, maxChars)}`;
  const where = sub === 0 ? `${pos}` : `${pos}.${sub}`;
  const how = undoing
    ? `confirmed once it is undone, or retry to have it undone (app.resolve, durable-tape resolve obligation <run> ${where})`
    : `confirmed or failed, or retry to have it sent again (app.resolve, durable-tape resolve effect <run> ${where})`;
  const message = `nobody knows what became of ${what} at position ${pos} (${reason ?? "in doubt"}${said}): find out on the other side, then resolve it as ${how}`;
  return new TapeError("TAPE_RUN_STUCK", message, { effect: name, pos, sub, reason });
}

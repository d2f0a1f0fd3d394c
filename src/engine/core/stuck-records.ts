import { decode } from "../../base/codec.ts";
import { describeThrown } from "../../base/thrown.ts";
import { TapeError } from "../../model/errors.ts";
import type { NewRecord, RecordData } from "../../model/records.ts";
import type { EffectRef, EffectRow, UnresolvedEffect } from "../../model/rows.ts";

export type StuckRecord = RecordData<"run.stuck">;

/** Why the run is STUCK and what to do. If it names effects, resolving one of them resumes the run. */
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
  const { error } = outcome === null ? {} : (decode(outcome) as { readonly error?: unknown });
  return { run, pos, sub, name, reason, error };
}

/** Enough to see why the upstream rejected it. */
const maxChars = 300;

/** The error for an effect or a compensation that only an operator can settle, with the `resolve` command for it. */
export function unresolvedEffectError(effect: UnresolvedEffect, isCompensation: boolean): TapeError {
  const { pos, sub, name, reason, error } = effect;
  const subject = isCompensation ? `the compensation of ${name ?? "a surplus effect"}` : `${name}`;
  const last = error === undefined ? "" : `; the last attempt failed with: ${describeThrown(error).slice(0, maxChars)}`;
  const where = sub === 0 ? `${pos}` : `${pos}.${sub}`;
  const how = isCompensation
    ? `confirmed once the effect is reversed, or retry to call it again (app.resolve, durable-tape resolve obligation <run> ${where})`
    : `confirmed or failed, or retry to send it again (app.resolve, durable-tape resolve effect <run> ${where})`;
  const message = `the outcome of ${subject} at position ${pos} is unknown (${reason ?? "in doubt"}${last}): check the upstream, then resolve it as ${how}`;
  const quoted = error === undefined ? {} : { last: describeThrown(error).slice(0, maxChars) };
  return new TapeError("TAPE_RUN_STUCK", message, { effect: name, pos, sub, reason, ...quoted });
}

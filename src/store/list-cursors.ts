import type { DeadLetter } from "../model/dead-letter.ts";
import { TapeError } from "../model/errors.ts";
import type { EffectRow, GateRow } from "../model/rows.ts";

/** The position of an effect in a list of all of them. */
export const effectCursor = ({ run, pos, sub }: Pick<EffectRow, "run" | "pos" | "sub">): string =>
  `${run}.${pos}.${sub}`;

/** The position of a gate in every list of gates: by when it was opened. */
export const gateCursor = ({ openedAt, run, pos }: Pick<GateRow, "openedAt" | "run" | "pos">): string =>
  `${openedAt}.${run}.${pos}`;

/** The position of a dead letter in a list of them. */
export const letterCursor = ({ at, event }: Pick<DeadLetter, "at" | "event">): string => `${at}.${event}`;

export function letterPlace(cursor: string | undefined): readonly [at: number, event: string] {
  if (cursor === undefined) return [-1, ""];
  const read = /^(\d{1,15})\.(.+)$/s.exec(cursor);
  if (read === null) throw foreignCursor();
  return [Number(read[1]), read[2]!];
}

/** The three numbers of a cursor; without a cursor, a position before all rows. */
export function placeIn(cursor: string | undefined): readonly [number, number, number] {
  if (cursor === undefined) return [0, 0, -1];
  const read = /^(\d{1,15})\.(\d{1,15})\.(\d{1,15})$/.exec(cursor);
  if (read === null) throw foreignCursor();
  return [Number(read[1]), Number(read[2]), Number(read[3])];
}

const foreignCursor = (): TapeError =>
  new TapeError("TAPE_BAD_INPUT", "the cursor does not belong to this list", { field: "after" });

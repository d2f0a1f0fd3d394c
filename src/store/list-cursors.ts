import { TapeError } from "../model/errors.ts";
import type { EffectRow, GateRow } from "../model/rows.ts";

/** The position of an effect in a list of all of them. */
export const effectCursor = ({ run, pos, sub }: Pick<EffectRow, "run" | "pos" | "sub">): string =>
  `${run}.${pos}.${sub}`;

/** The position of a gate in every list of gates: by when it was opened. */
export const gateCursor = ({ openedAt, run, pos }: Pick<GateRow, "openedAt" | "run" | "pos">): string =>
  `${openedAt}.${run}.${pos}`;

/** The three numbers of a cursor; without a cursor, a position before all rows. */
export function placeIn(cursor: string | undefined): readonly [number, number, number] {
  if (cursor === undefined) return [0, 0, -1];
  const read = /^(\d{1,15})\.(\d{1,15})\.(\d{1,15})$/.exec(cursor);
  if (read === null)
    throw new TapeError("TAPE_BAD_INPUT", "the cursor does not belong to this list", { field: "after" });
  return [Number(read[1]), Number(read[2]), Number(read[3])];
}

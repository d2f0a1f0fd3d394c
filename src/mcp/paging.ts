import { TapeError } from "../model/errors.ts";

/**
 * Characters of one result, about 12 000 tokens: a model can read it, and a few of them fit into its context. More is
 * read by the cursor in `next`.
 */
export const maxResultChars = 48_000;

/** Where a page starts: a position of the list, and how much of its first row earlier pages had. */
export interface Place {
  readonly after: string | undefined;
  readonly offset: number;
}

const cursorText = /^([^~]{0,600})(?:~(\d{1,9}))?$/s;

export function placeOf(cursor: string | undefined): Place {
  if (cursor === undefined) return { after: undefined, offset: 0 };
  const [found, after = "", offset = "0"] = cursorText.exec(cursor) ?? [];
  if (found === undefined) throw new TapeError("TAPE_BAD_INPUT", "cursor: not one of this list", { field: "cursor" });
  return { after: after === "" ? undefined : after, offset: Number(offset) };
}

/** A place that is a number, such as the seq of a record. */
export function numberAt({ after }: Place, first: number): number {
  if (after === undefined) return first;
  if (/^\d{1,15}$/.test(after)) return Number(after);
  throw new TapeError("TAPE_BAD_INPUT", "cursor: not one of this list", { field: "cursor" });
}

export interface Rows<T> {
  readonly field: string;
  readonly rows: readonly T[];
  /** The position of the list behind this row. */
  readonly behind: (row: T) => string;
  /** There are further rows. */
  readonly more: boolean;
  /** Other fields of the result, which are short. */
  readonly others?: object;
}

/**
 * The rows that fit into one result. A row that does not fit alone is delivered as text in parts: an approver must be
 * able to read all of what is approved.
 */
export function pageOf<T>({ after, offset }: Place, { field, rows, behind, more, others = {} }: Rows<T>): object {
  const texts = rows.map((row) => JSON.stringify(row));
  const [first] = texts;
  if (first !== undefined && (offset > 0 || first.length > maxResultChars)) {
    const text = partOf(first, offset);
    const end = offset + text.length;
    const isWhole = end >= first.length;
    const next = isWhole ? (more || rows.length > 1 ? behind(rows[0]!) : undefined) : `${after ?? ""}~${end}`;
    return {
      ...others,
      part: { of: field, from: offset, chars: first.length, text },
      ...(next !== undefined && { next }),
    };
  }
  let [count, chars] = [0, 0];
  while (count < rows.length && chars + texts[count]!.length <= maxResultChars) chars += texts[count++]!.length;
  const isCut = more || count < rows.length;
  return {
    ...others,
    [field]: rows.slice(0, count),
    ...(isCut && count > 0 && { next: behind(rows[count - 1]!) }),
  };
}

/** No half of a surrogate pair at the end: each part is valid text. */
function partOf(text: string, offset: number): string {
  const part = text.slice(offset, offset + maxResultChars);
  const last = part.charCodeAt(part.length - 1);
  return last >= 0xd800 && last <= 0xdbff && part.length > 1 ? part.slice(0, -1) : part;
}

/** A value beside a list: whole if it is short, otherwise its start, and where the rest is. */
export function excerpt(json: unknown, rest: string, maxChars = 4_000): unknown {
  const text = JSON.stringify(json);
  if (text === undefined || text.length <= maxChars) return json;
  return { start: text.slice(0, maxChars).toWellFormed(), chars: text.length, rest };
}

import type { PaginationOptions } from "@workflow/world";
import { TapeError } from "../model/errors.ts";

/** Rows of one page. */
export const maxLimit = 1_000;
/** Characters of ids, names and tokens that come from outside. */
const maxText = 512;

/** How a page is read. */
export interface PageRequest {
  readonly limit: number;
  readonly order: "asc" | "desc";
  readonly cursor: string | undefined;
}

/** Checks the options of a page. */
export function pageRequest(
  { limit = 100, cursor, sortOrder }: PaginationOptions = {},
  usual: "asc" | "desc" = "desc",
): PageRequest {
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > maxLimit) {
    throw bad("limit", `limit is a whole number from 1 to ${maxLimit}, not ${String(limit)}`);
  }
  return { limit, order: sortOrder ?? usual, cursor: cursor === undefined ? undefined : textOf("cursor", cursor) };
}

/** The number that a cursor names. */
export function numberOfCursor(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  if (!/^\d{1,12}$/.test(cursor)) throw bad("cursor", `${cursor} is no cursor of this list`);
  return Number(cursor);
}

/** An id, name or token. */
export function textOf(field: string, value: unknown): string {
  if (typeof value === "string" && value.length > 0 && value.length <= maxText) return value;
  throw bad(field, `${field} is a text of 1 to ${maxText} characters`);
}

/** A page of a list that is in memory, in order of creation. Its places do not change: nothing is ever removed. */
export function pageIn<T, R>(
  all: readonly T[],
  { limit, order, cursor }: PageRequest,
  show: (item: T) => R | undefined,
): { data: R[]; cursor: string | null; hasMore: boolean } {
  const step = order === "asc" ? 1 : -1;
  const data: R[] = [];
  let place = numberOfCursor(cursor) ?? (order === "asc" ? 0 : all.length - 1);
  let next: number | undefined;
  for (; place >= 0 && place < all.length; place += step) {
    const shown = show(all[place]!);
    if (shown === undefined) continue;
    if (data.length === limit) {
      next = place;
      break;
    }
    data.push(shown);
  }
  return { data, cursor: next === undefined ? null : String(next), hasMore: next !== undefined };
}

export const bad = (field: string, message: string): TapeError => new TapeError("TAPE_BAD_INPUT", message, { field });

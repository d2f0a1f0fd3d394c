import type { Change, ChangeKind } from "../../model/changes.ts";
import type { QueryResult, Row } from "../sql/plan.ts";
import type { Tables } from "./tables.ts";

/** Store time of one transaction: wall for people and dates, monotonic for leases. Whole milliseconds. */
export interface Times {
  readonly at: number;
  readonly now: number;
  /** For what is to happen some time after now: a date that no one can set. */
  readonly steady: number;
}

/**
 * What an SQL store keeps in the file of the same name, as a function over the tables. The SQL file says why the
 * statement is as it is and whether it is fenced; here it is said only where this store differs. Each declares the
 * parameters it takes, as a statement of SQL does: `never` lets all of them stand in one record.
 */
export type Statement = (tables: Tables, params: never, times: Times) => QueryResult;
export type Statements = Readonly<Record<string, Statement>>;

/** The parameters of a statement that carries out a change. */
export type Do<Kind extends ChangeKind> = Extract<Change, { readonly do: Kind }>;
/** With the tenant under whose fence it is carried out, where it may reach into a journal that a record names. */
export type DoAs<Kind extends ChangeKind> = Do<Kind> & { readonly tenant: string };

export const rows = (found: readonly Row[]): QueryResult => ({ rows: found, count: found.length });
export const row = (found: Row | undefined): QueryResult => rows(present(found));
/** The row, if there is one, for what works on all that were found. */
export const present = <R>(found: R | undefined): R[] => (found === undefined ? [] : [found]);
export const none: QueryResult = rows([]);
export const changed = (count: number): QueryResult => ({ rows: [], count });

type Column<R> = (row: R) => string | number;

/** `order by` the columns, then `limit`. */
export function page<R>(found: readonly R[], limit: number, ...columns: readonly Column<R>[]): R[] {
  const order = (a: R, b: R): number => {
    for (const column of columns) {
      const difference = compare(column(a), column(b));
      if (difference !== 0) return difference;
    }
    return 0;
  };
  return found.toSorted(order).slice(0, limit);
}

/** Text by its UTF-8 bytes, as SQLite sorts: by its UTF-16 units an emoji would come before "ﬀ". */
export function compare(a: string | number, b: string | number): number {
  if (typeof a === "number" || typeof b === "number") return Number(a) - Number(b);
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Whether a comma-separated list has the word. */
export const listed = (list: string, word: string): boolean => `,${list},`.includes(`,${word},`);

/** `is null or equal`: a filter that was not given lets everything pass. */
export const passes = <T>(filter: T | null, value: T): boolean => filter === null || filter === value;

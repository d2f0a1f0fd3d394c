import { toJson } from "../base/codec.ts";
import { reasonOf } from "../base/reason.ts";
import { safeJson, visible } from "../base/text.ts";
import { type Invocation, UsageError } from "./command.ts";

/** One column of a table. */
export interface Column<T> {
  readonly title: string;
  readonly of: (row: T) => string | number;
  readonly right?: true;
}

/** Prints rows as a table, or as JSON with `-o json`; `empty` is the line to print when there are no rows. */
export function printRows<T>(
  invocation: Invocation,
  rows: readonly T[],
  columns: readonly Column<T>[],
  empty: string,
): void {
  const { screen } = invocation;
  if (wantsJson(invocation)) {
    printJson(invocation, rows);
    return;
  }
  if (rows.length === 0) {
    screen.line(empty);
    return;
  }
  for (const line of tableOf(rows, columns)) screen.line(line);
}

export function tableOf<T>(rows: readonly T[], columns: readonly Column<T>[]): string[] {
  const cells = rows.map((row) => columns.map(({ of }) => oneLine(String(of(row)))));
  const widths = columns.map(({ title }, k) => Math.max(title.length, ...cells.map((line) => line[k]!.length)));
  const join = (line: readonly string[]): string =>
    line
      .map((cell, k) => (columns[k]!.right ? cell.padStart(widths[k]!) : cell.padEnd(widths[k]!)))
      .join("  ")
      .trimEnd();
  return [join(columns.map(({ title }) => title)), ...cells.map(join)];
}

/** Prints whole numbers beyond 2^53 as text, and values in their wire format. */
export function printJson(invocation: Invocation, value: unknown): void {
  invocation.screen.block(jsonText(value));
}

export function jsonText(value: unknown, indent: number | undefined = 2): string {
  const text = JSON.stringify(
    value,
    (_key, held: unknown) => {
      if (typeof held === "bigint") return String(held);
      if (held instanceof Error || held instanceof Map || held instanceof Set) return toJson(held);
      return held;
    },
    indent,
  );
  return safeJson(text ?? "null");
}

export function wantsJson(invocation: Invocation): boolean {
  const output = invocation.text("output");
  if (output === undefined || output === "table") return false;
  if (output === "json") return true;
  throw new UsageError(`-o must be table or json, not ${output}`);
}

/** Stored text in a cell: control characters are escaped before the column's width is measured. */
export const oneLine = (text: string): string => visible(text.replaceAll("\t", " "));

/** A length of time to two digits: "3.2 s", "14 m", "2 d". */
export function lasting(ms: number): string {
  const units = [
    [86_400_000, "d"],
    [3_600_000, "h"],
    [60_000, "m"],
    [1_000, "s"],
  ] as const;
  for (const [size, unit] of units) {
    if (ms >= size) return `${ms / size >= 10 ? Math.round(ms / size) : Math.round((ms * 10) / size) / 10} ${unit}`;
  }
  return `${Math.max(0, Math.round(ms))} ms`;
}

/** "1 run", "2 runs". */
export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

export const timeOf = (at: number): string => new Date(at).toISOString().replace("T", " ").slice(0, 19);

/** Truncates long values; `-o json` prints them in full. */
export function brief(value: unknown, maxChars = 60): string {
  const text = oneLine(value === undefined ? "" : typeof value === "string" ? value : plainText(value));
  return text.length > maxChars ? `${text.slice(0, maxChars - 1)}…` : text;
}

/** Prints an error as its message and cause, not as the envelope it is stored in. */
function plainText(value: unknown): string {
  return value instanceof Error ? reasonOf(value) : jsonText(value, 0);
}

import type { TermView } from "../../model/lease.ts";

/** The term history as aligned lines, oldest term first. */
export function termLines(terms: readonly TermView[]): string[] {
  const cells = terms.map((term) => [
    `token ${term.token}`,
    term.label,
    term.reactor,
    `started ${clock(term.startedAt)} (${term.startReason}${term.auditReason === undefined ? "" : `: ${term.auditReason}`})`,
    term.endReason === undefined
      ? "still held"
      : `ended ${term.endedAt === undefined ? "?" : clock(term.endedAt)} (${term.endReason})`,
    `${term.renewals} renewals`,
  ]);
  const widths = (cells[0] ?? []).map((_cell, k) => Math.max(...cells.map((row) => row[k]!.length)));
  return cells.map((row) =>
    row
      .map((cell, k) => cell.padEnd(widths[k]!))
      .join("  ")
      .trimEnd(),
  );
}

const clock = (at: number): string => new Date(at).toISOString().slice(11, 23);

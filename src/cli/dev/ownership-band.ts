import type { TermView } from "../../model/lease.ts";
import type { JournalRecord, TermReason } from "../../model/records.ts";
import { brief, lasting, oneLine } from "../output.ts";

export type BandRecord = Pick<JournalRecord, "at" | "kind" | "data">;

export interface BandInput {
  /** The term history of the run's lease, oldest first. */
  readonly terms: readonly TermView[];
  /** Records of the run's journal and of its items; the important ones get a mark above the band. */
  readonly records: readonly BandRecord[];
  /** The end of the band, and of a term that is still held; for an ended run the time of its end. */
  readonly now: number;
  readonly width: number;
}

/** Colours text; each owner has its own number. */
export interface Paint {
  owner(number: number, text: string): string;
  dim(text: string): string;
}

export const plain: Paint = { owner: (_number, text) => text, dim: (text) => text };

interface Piece {
  readonly from: number;
  readonly to: number;
  /** Undefined while the lease was free. */
  readonly term?: TermView;
  cells: number;
}

/** Reasons of terms that started because the previous term did not end normally. */
const takeovers: ReadonlySet<TermReason> = new Set(["recovery", "stalled", "timeout", "manual", "cancellation"]);

/**
 * Draws who owned a run: marks for its events, one segment per term in its owner's colour, then one line per term. Time
 * runs to the right, a takeover starts with ▶, and · is time in which the lease was free.
 */
export function drawBand(input: BandInput, paint: Paint = plain): string[] {
  const { terms, records } = input;
  if (terms.length === 0) return [paint.dim("not held yet")];
  const pieces = piecesOf(input);
  const owners = [...new Set(terms.map(({ owner }) => owner))];
  const colour = (term: TermView, text: string): string => paint.owner(owners.indexOf(term.owner), text);
  const band = pieces.map((piece) =>
    piece.term === undefined
      ? paint.dim("·".repeat(piece.cells))
      : colour(piece.term, segment(piece.term, piece.cells)),
  );
  return [marks(pieces, records), band.join(""), ...legend(input, colour)];
}

function piecesOf({ terms, now, width }: BandInput): Piece[] {
  // At least two cells per term; older terms that do not fit appear only in the legend.
  const visible = terms.slice(-Math.max(1, Math.floor(width / 2)));
  const pieces: Piece[] = [];
  let last: number | undefined;
  for (const term of visible) {
    if (last !== undefined && term.startedAt > last) pieces.push({ from: last, to: term.startedAt, cells: 0 });
    const to = Math.max(term.startedAt, term.endedAt ?? now);
    pieces.push({ from: term.startedAt, to, term, cells: 0 });
    last = to;
  }
  if (last !== undefined && now > last) pieces.push({ from: last, to: now, cells: 0 });
  share(pieces, width);
  return pieces.filter(({ cells }) => cells > 0);
}

/** Cells in proportion to time, at least one per term; the longest piece absorbs the rounding. */
function share(pieces: readonly Piece[], width: number): void {
  const whole = Math.max(1, sum(pieces.map(({ from, to }) => to - from)));
  for (const piece of pieces) {
    const cells = Math.floor(((piece.to - piece.from) / whole) * width);
    piece.cells = piece.term === undefined ? cells : Math.max(1, cells);
  }
  for (let over = sum(pieces.map(({ cells }) => cells)) - width; over !== 0; ) {
    const longest = pieces.reduce((a, b) => (b.cells > a.cells ? b : a));
    const taken = over < 0 ? over : Math.min(over, longest.cells - 1);
    longest.cells -= taken;
    over -= taken;
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

function segment(term: TermView, cells: number): string {
  const numbered = `${takeovers.has(term.startReason) ? "▶" : "┣"}${term.token}`;
  const named = `${numbered} ${oneLine(term.label)}`;
  const label = named.length < cells ? `${named} ` : named.length === cells ? named : numbered;
  return (label.length > cells ? numbered.slice(0, 1) : label).padEnd(cells, "━");
}

function marks(pieces: readonly Piece[], records: readonly BandRecord[]): string {
  const line = new Map<number, string>();
  const width = sum(pieces.map(({ cells }) => cells));
  for (const record of records) {
    const mark = markOf(record);
    if (mark === undefined) continue;
    let cell = Math.min(cellOf(pieces, record.at), width - 1);
    while (line.has(cell) && cell < width - 1) cell += 1;
    line.set(cell, mark);
  }
  return Array.from({ length: width }, (_, cell) => line.get(cell) ?? " ")
    .join("")
    .trimEnd();
}

function cellOf(pieces: readonly Piece[], at: number): number {
  let before = 0;
  for (const { from, to, cells } of pieces) {
    if (at <= to) return before + Math.floor((Math.max(0, at - from) / Math.max(1, to - from)) * cells);
    before += cells;
  }
  return before;
}

export const markMeanings = "→ sent  ? unknown  ✓ confirmed  ✗ failed  ■ ended";

function markOf({ kind, data }: BandRecord): string | undefined {
  if (kind === "effect.dispatched") return "→";
  if (kind === "run.ended") return "■";
  if (kind !== "effect.settled") return undefined;
  const { to } = data as { readonly to: string };
  return to === "UNKNOWN" ? "?" : to === "CONFIRMED" ? "✓" : to === "FAILED" ? "✗" : undefined;
}

function legend({ terms, now, width }: BandInput, colour: (term: TermView, text: string) => string): string[] {
  const cells = terms.map((term) => [
    `token ${term.token}`,
    oneLine(term.label),
    `${term.startReason} → ${term.endReason ?? "still held"}`,
    lasting(Math.max(0, (term.endedAt ?? now) - term.startedAt)),
  ]);
  const widths = [0, 1, 2].map((k) => Math.max(...cells.map((row) => row[k]!.length)));
  return cells.map((row, n) =>
    colour(terms[n]!, brief(row.map((cell, k) => cell.padEnd(widths[k] ?? 0)).join("  "), width)),
  );
}

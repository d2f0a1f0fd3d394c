/** Maps a time to its position on the axis, from 0 to 1, and back. */
export interface Scale {
  readonly at: (time: number) => number;
  readonly timeAt: (share: number) => number;
}

/**
 * `linear`: a second has the same width everywhere. `compressed`: idle stretches are narrowed, so that ten quick steps
 * and a night of waiting fit into one view. Both keep the order.
 */
export type ScaleKind = "compressed" | "linear";

/** Exponent of a gap's width: at 0.3 an hour is about twelve times as wide as a second. */
const compression = 0.3;

export function scaleOf(times: readonly number[], kind: ScaleKind): Scale {
  const knots = [...new Set(times)].sort((a, b) => a - b);
  const [first = 0] = knots;
  const last = knots.at(-1) ?? first;
  if (last === first) return { at: () => 0, timeAt: () => first };
  const widths = knots
    .slice(1)
    .map((time, k) => (kind === "linear" ? time - knots[k]! : (time - knots[k]!) ** compression));
  const total = widths.reduce((sum, width) => sum + width, 0);
  const shares = [0];
  for (const width of widths) shares.push(shares.at(-1)! + width / total);
  const between = (value: number, from: readonly number[], to: readonly number[]): number => {
    if (value <= from[0]!) return to[0]!;
    const next = from.findIndex((knot) => knot >= value);
    if (next < 0) return to.at(-1)!;
    const [a, b] = [from[next - 1]!, from[next]!];
    const part = b === a ? 0 : (value - a) / (b - a);
    return to[next - 1]! + part * (to[next]! - to[next - 1]!);
  };
  return { at: (time) => between(time, knots, shares), timeAt: (share) => between(share, shares, knots) };
}

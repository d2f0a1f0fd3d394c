/** A measured series: its values over time, and the change that counts as drift. */
export interface Series {
  readonly name: string;
  readonly unit: string;
  readonly values: readonly number[];
  /** Drift: the later part differs from `up` or `down` times the earlier one by more than `slack`. */
  readonly bound: Bound;
}

export type Bound =
  | { readonly up: number; readonly slack: number }
  | { readonly down: number; readonly slack: number }
  /** Grows by design; not judged. */
  | "grows"
  /** Only displayed; not judged. */
  | "display";

export interface SeriesVerdict {
  readonly name: string;
  readonly unit: string;
  readonly early: number;
  readonly late: number;
  /** Change per hour as the median of all pairwise slopes, which a few outliers do not move. */
  readonly perHour: number;
  readonly verdict: "steady" | "DRIFTS" | "grows by design" | "";
}

/** Time until the first runs have been deleted and caches are full. */
const warmUpMs = 45_000;

/** Skips the warm-up, then compares the medians of the first and the last third of the rest. */
export function judge(series: Series, everyMs: number): SeriesVerdict {
  const { name, unit, bound } = series;
  const cold = Math.max(Math.ceil(warmUpMs / everyMs), Math.floor(series.values.length / 5));
  const warm = series.values.slice(cold);
  const third = Math.max(1, Math.floor(warm.length / 3));
  const early = median(warm.slice(0, third));
  const late = median(warm.slice(-third));
  const perHour = (slope(warm) * 3_600_000) / everyMs;
  return { name, unit, early, late, perHour, verdict: verdictOf(early, late, bound) };
}

function verdictOf(early: number, late: number, bound: Bound): SeriesVerdict["verdict"] {
  if (bound === "grows") return "grows by design";
  if (bound === "display") return "";
  const drifts = "up" in bound ? late > early * bound.up + bound.slack : late < early * bound.down - bound.slack;
  return drifts ? "DRIFTS" : "steady";
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function slope(values: readonly number[]): number {
  const slopes = values.flatMap((value, k) => values.slice(k + 1).map((later, d) => (later - value) / (d + 1)));
  return slopes.length === 0 ? 0 : median(slopes);
}

export function table(judged: readonly SeriesVerdict[]): string {
  const number = (value: number): string =>
    (Math.abs(value) >= 100 ? Math.round(value) : Number(value.toFixed(1))).toString();
  return [
    "| series | earlier | later | change per hour | verdict |",
    "|---|---:|---:|---:|---|",
    ...judged.map(
      ({ name, unit, early, late, perHour, verdict }) =>
        `| ${name}${unit ? `, ${unit}` : ""} | ${number(early)} | ${number(late)} | ${number(perHour)} | ${verdict} |`,
    ),
  ].join("\n");
}

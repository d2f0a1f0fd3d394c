import { formatDuration } from "../format.ts";
import type { Tone } from "./badge.tsx";

export interface Series {
  readonly name: string;
  readonly tone: Tone;
  /** Bars are stacked; lines are drawn over them. null is a gap: no sample. */
  readonly kind: "bar" | "line";
  readonly values: readonly (number | null)[];
}

const height = 100;
/** Lines differ without colour too. */
const dashes = ["", "6 3", "2 3", "10 3 2 3", "4 6"];

/** Round numbers at which an axis may end. */
const countTops = [1, 10, 100, 1_000, 10_000, 100_000].flatMap((step) => [step, 2 * step, 5 * step]);
export const durationTops = [
  ...[1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000],
  ...[3_600_000, 7_200_000, 21_600_000, 86_400_000],
];

/** A small chart of the recent past. Title and summary are its accessible name. */
export function Chart({
  title,
  series,
  spanMs,
  format,
  tops = countTops,
  summary,
}: {
  readonly title: string;
  readonly series: readonly Series[];
  readonly spanMs: number;
  readonly format: (value: number) => string;
  /** Where the axis may end, ascending. */
  readonly tops?: readonly number[];
  readonly summary: string;
}) {
  const width = Math.max(1, ...series.map(({ values }) => values.length));
  const bars = series.filter(({ kind }) => kind === "bar");
  const lines = series.filter(({ kind }) => kind === "line");
  const columns = Array.from({ length: width }, (_none, k) => bars.map(({ values }) => values[k] ?? 0));
  const top = Math.max(
    ...columns.map((column) => column.reduce((sum, value) => sum + value, 0)),
    ...lines.flatMap(({ values }) => values.map((value) => value ?? 0)),
  );
  const axisEnd = tops.find((end) => end >= top) ?? top;
  const y = (value: number): number => height - (value / axisEnd) * height;
  return (
    <figure className="chart">
      <figcaption>
        <strong>{title}</strong>
        <ChartNames series={series} lines={lines} />
      </figcaption>
      <div className="plot">
        <span className="plot-top">{format(axisEnd)}</span>
        <span className="plot-zero">0</span>
        <svg
          viewBox={`0 0 ${width} ${height}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${title}: ${summary}`}
        >
          <path className="grid" d={`M0 0H${width}M0 ${height / 2}H${width}M0 ${height}H${width}`} />
          {bars.map(({ name, tone }, level) => (
            <path key={name} className={`bar ${tone}`} d={barsOf(columns, level, y)} />
          ))}
          {lines.map(({ name, tone, values }) => (
            <path key={name} className={tone} d={pathOf(values, y)} strokeDasharray={dashOf(lines, name)} />
          ))}
        </svg>
      </div>
      <div className="plot-times muted small" aria-hidden="true">
        <span>{formatDuration(spanMs)} ago</span>
        <span>{formatDuration(spanMs / 2)} ago</span>
        <span>now</span>
      </div>
    </figure>
  );
}

function ChartNames({ series, lines }: { readonly series: readonly Series[]; readonly lines: readonly Series[] }) {
  return (
    <ul className="chart-names">
      {series.map(({ name, tone, kind }) => (
        <li key={name}>
          <svg viewBox="0 0 18 10" width="18" height="10" className={tone} aria-hidden="true">
            {kind === "bar" ? (
              <path className="bar" d="M3 0h12v10h-12Z" />
            ) : (
              <path d="M0 5h18" strokeDasharray={dashOf(lines, name)} />
            )}
          </svg>
          {name}
        </li>
      ))}
    </ul>
  );
}

const dashOf = (lines: readonly Series[], name: string): string =>
  dashes[lines.findIndex((line) => line.name === name) % dashes.length]!;

/** The bars of one series, stacked on the series before it. */
function barsOf(columns: readonly (readonly number[])[], level: number, y: (value: number) => number): string {
  return columns
    .map((column, k) => {
      const base = column.slice(0, level).reduce((sum, value) => sum + value, 0);
      const value = column[level]!;
      return value === 0 ? "" : `M${k + 0.12} ${y(base)}V${y(base + value)}h0.76V${y(base)}Z`;
    })
    .join("");
}

/** A single sample is a short stroke; a gap breaks the line. */
function pathOf(values: readonly (number | null)[], y: (value: number) => number): string {
  return values
    .map((value, k) => {
      if (value === null) return "";
      const from = k === 0 || values[k - 1] === null ? `M${k} ${y(value)}` : "";
      return `${from}L${k + 0.5} ${y(value)}`;
    })
    .join("");
}

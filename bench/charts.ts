import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Figures, Results } from "./peers/results.ts";
import { isOurs, type SystemName, systemNames } from "./peers/system.ts";
import { titles, withTable } from "./peers/table.ts";

const root = fileURLToPath(new URL("../", import.meta.url));
export const resultsFile = "bench/results/peers.json";
export const pageFile = "docs/benchmarks.md";

export interface Chart {
  readonly name: string;
  readonly title: string;
  readonly note: string;
  /** `log`: from one to a thousand times as much on one picture. */
  readonly scale: "linear" | "log";
  readonly figure: (figures: Figures, name: SystemName, results: Results) => number | undefined;
}

export const charts: readonly Chart[] = [
  {
    name: "steps-128",
    title: "Steps a second, 128 runs at a time",
    note: "more is better",
    scale: "linear",
    figure: (f) => f.steps128,
  },
  {
    name: "steps-1",
    title: "Steps a second, one run at a time",
    note: "more is better",
    scale: "linear",
    figure: (f) => f.steps1,
  },
  {
    name: "short",
    title: "One-step runs a second, started and finished",
    note: "more is better",
    scale: "linear",
    figure: (f) => f.shortRunsPerSecond,
  },
  {
    name: "timers",
    title: "1,000 timers due at once: p99 lag in ms",
    note: "less is better; logarithmic",
    scale: "log",
    figure: (f) => f.timersP99Ms,
  },
  {
    name: "duplicates",
    title: "Wires that happened twice after kill -9",
    note: "none is right",
    scale: "linear",
    figure: (_, name, results) => results.duplicates[name],
  },
];

const width = 640;
const left = 140;
const right = 80;
const bar = 20;
const gap = 10;
const top = 52;

/** Bars with their numbers. Colours follow the reader's light or dark; fonts are the reader's own. */
export function drawChart(chart: Chart, results: Results): string {
  const shown = systemNames.flatMap((name) => {
    const value = results.systems[name] && chart.figure(results.systems[name], name, results);
    return value === undefined ? [] : [{ name, value }];
  });
  const max = Math.max(1, ...shown.map(({ value }) => value));
  const share = (value: number): number =>
    chart.scale === "log" ? Math.log10(1 + value) / Math.log10(1 + max) : value / max;
  const height = top + shown.length * (bar + gap) + 8;
  const bars = shown.map(({ name, value }, k) => {
    const y = top + k * (bar + gap);
    const long = Math.max(value > 0 ? 1 : 0, Math.round(share(value) * (width - left - right)));
    const text = Math.round(value).toLocaleString("en-US");
    return `  <text x="${left - 8}" y="${y + 15}" class="name">${titles[name]}</text>
  <rect x="${left}" y="${y}" width="${long}" height="${bar}" rx="2" class="${isOurs(name) ? "ours" : "theirs"}"/>
  <text x="${left + long + 6}" y="${y + 15}" class="value">${text}</text>`;
  });
  const label = `${chart.title}: ${shown.map(({ name, value }) => `${titles[name]} ${Math.round(value)}`).join(", ")}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${label}">
  <style>
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .title { font-weight: 600; font-size: 15px }
    .note { fill: #59636e }
    .name { text-anchor: end }
    .ours { fill: #0a7d55 }
    .theirs { fill: #8c959f }
    .ground { fill: #ffffff }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .note { fill: #9198a1 }
      .ours { fill: #2fbf8a }
      .theirs { fill: #6e7681 }
      .ground { fill: #0d1117 }
    }
  </style>
  <rect width="${width}" height="${height}" rx="6" class="ground"/>
  <text x="16" y="24" class="title">${chart.title}</text>
  <text x="16" y="42" class="note">${chart.note}</text>
${bars.join("\n")}
</svg>
`;
}

export const chartFile = (chart: Chart): string => `docs/images/bench-${chart.name}.svg`;

/** Charts and table from one file of results; nothing else may be in them, and a test compares. */
export function writeReport(results: Results): void {
  for (const chart of charts) writeFileSync(join(root, chartFile(chart)), drawChart(chart, results));
  const page = join(root, pageFile);
  writeFileSync(page, withTable(readFileSync(page, "utf8"), results));
}

export function writeResults(results: Results): void {
  writeFileSync(join(root, resultsFile), `${JSON.stringify(results, null, 2)}\n`);
  writeReport(results);
}

export function readResults(file: string): Results {
  return JSON.parse(readFileSync(file, "utf8")) as Results;
}

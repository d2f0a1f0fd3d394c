import { type Figures, type RatioName, type Results, ratiosBeside } from "./results.ts";
import { isOurs, type SystemName, systemNames } from "./system.ts";

/** What people call them; ours first. */
export const titles: Readonly<Record<SystemName, string>> = {
  "tape-sqlite": "Tape, SQLite",
  "tape-postgres": "Tape, PostgreSQL",
  "tape-remote": "Tape, server",
  restate: "Restate",
  dbos: "DBOS",
  absurd: "Absurd",
  "pg-boss": "pg-boss",
};

const begin = "<!-- begin: npm run bench -- peers --write -->";
const end = "<!-- end -->";

/** The page with the part between its markers replaced. */
export function withTable(page: string, results: Results): string {
  const from = page.indexOf(begin);
  const to = page.indexOf(end, from);
  if (from < 0 || to < 0) throw new Error("docs/benchmarks.md has lost its markers");
  return `${page.slice(0, from + begin.length)}\n${generatedPart(results)}\n${page.slice(to)}`;
}

type Row = readonly [title: string, cell: (figures: Figures, name: SystemName) => string | undefined];

const count = (value: number | undefined): string | undefined =>
  value === undefined ? undefined : Math.round(value).toLocaleString("en-US");
const both = (one: number | undefined, two: number | undefined): string | undefined =>
  one === undefined || two === undefined ? undefined : `${count(one)} / ${count(two)}`;
const seconds = (ms: number | undefined): string | undefined => (ms === undefined ? undefined : (ms / 1000).toFixed(1));

const rows = (results: Results): readonly Row[] => [
  ["10-step runs, 1 at a time: steps/s", ({ steps1 }) => count(steps1)],
  ["10-step runs, 16 at a time: steps/s", ({ steps16 }) => count(steps16)],
  ["10-step runs, 128 at a time: steps/s", ({ steps128 }) => count(steps128)],
  ["what the disk allows, 1 / 128 at a time: rows/s", (f) => both(f.floor1, f.floor128)],
  ["latency of such a run at 16, p50 / p99: ms", (f) => both(f.latency16P50Ms, f.latency16P99Ms)],
  [`${results.settings.shortRuns} one-step runs: runs/s`, (f) => count(f.shortRunsPerSecond)],
  [`${results.settings.timers} timers due at once, lag p50 / p99: ms`, (f) => both(f.timersP50Ms, f.timersP99Ms)],
  ["kill -9, 200 in flight: s until all are finished", (f) => seconds(f.recoveryMs)],
  ["the same from the end of the dead one's leases: s", (f) => seconds(f.recoveryFromExpiryMs)],
  ["steps executed twice", ({ stepsTwice }) => stepsTwice?.toString()],
  ["**wires that the world saw twice** (all rounds)", (_, name) => results.duplicates[name]?.toString()],
  ["install + first run: s", (f) => seconds(f.installMs)],
  ["on disk: MB", ({ installMb }) => installMb?.toFixed(1)],
];

function generatedPart(results: Results): string {
  const names = systemNames.filter((name) => results.systems[name] !== undefined);
  const { machine, versions, settings } = results;
  const peers = names.filter((name) => !isOurs(name));
  const atMost = Object.fromEntries(Object.entries(results.atMost).map(([name, bound]) => [name, String(bound ?? "")]));
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const table = rows(results).map(([title, cell]) =>
    line([title, ...names.map((name) => cell(results.systems[name]!, name) ?? "–")]),
  );
  const missing = [
    ...Object.entries(results.notRun).map(([name, why]) => `NOT RUN: ${name}, ${why}.`),
    ...results.faults.map((fault) => `FAILED: ${fault.split("\n")[0]}.`),
  ];
  return [
    "",
    line(["", ...names.map((name) => titles[name])]),
    line(["---", ...names.map(() => "---:")]),
    ...table,
    "",
    ...missing,
    ...(missing.length > 0 ? [""] : []),
    line(["ours ÷ theirs", "the best peer", "at most, on this disk", ...peers.map((name) => titles[name])]),
    line(["---", "---:", "---:", ...peers.map(() => "---:")]),
    ...Object.entries(results.ratios).map(([name, ratio]) => {
      const each = ratiosBeside(results.systems, name as RatioName);
      const cells = peers.map((peer) => each.get(peer)?.toString() ?? "");
      return line([`\`${name}\``, `**${ratio ?? "–"}**`, atMost[name] ?? "", ...cells]);
    }),
    "",
    `Measured ${results.at.slice(0, 10)} on ${machine.cores} cores (${machine.cpu}, ${machine.platform}), Node ${machine.node.slice(1)}, ` +
      `medians of ${settings.rounds} rounds; leases of ${settings.recoveryTtlSeconds} s in the killing workload. ` +
      `${Object.entries(versions)
        .map(([name, version]) => `${name} ${version}`)
        .join(", ")}.`,
    "",
  ].join("\n");
}

import { benchAgents } from "./agents.ts";
import { benchAsks } from "./asks.ts";
import { benchCapacity } from "./capacity.ts";
import { readResults, writeReport, writeResults } from "./charts.ts";
import { benchCosts } from "./costs.ts";
import { benchEndless } from "./endless.ts";
import { benchEvents } from "./events/all.ts";
import { benchGrowth } from "./growth.ts";
import { benchHandover } from "./handover.ts";
import { benchIdle } from "./idle.ts";
import { benchMigrate } from "./migrate.ts";
import { benchNeighbours } from "./neighbours.ts";
import { benchObjects } from "./objects.ts";
import { measurePeers, planOf } from "./peers/peers.ts";
import { benchPhases } from "./phases.ts";
import { benchProfile } from "./profile.ts";
import { benchQueues } from "./queues.ts";
import { benchRemote } from "./remote.ts";
import { benchRuns } from "./runs.ts";
import { benchSleeps } from "./sleeps.ts";
import { benchStore } from "./store.ts";
import { benchStreams } from "./streams.ts";
import { benchTrips } from "./trips.ts";

/** `npm run bench -- <name> [--json] [--seconds N]`: progress on stderr, figures on stdout, one JSON object last. */
const benches: Readonly<Record<string, (options: BenchOptions) => Promise<object>>> = {
  store: benchStore,
  runs: benchRuns,
  remote: benchRemote,
  handover: benchHandover,
  idle: benchIdle,
  growth: benchGrowth,
  migrate: benchMigrate,
  neighbours: benchNeighbours,
  sleeps: benchSleeps,
  agents: benchAgents,
  asks: benchAsks,
  capacity: benchCapacity,
  costs: benchCosts,
  streams: benchStreams,
  profile: benchProfile,
  phases: benchPhases,
  objects: benchObjects,
  endless: benchEndless,
  events: benchEvents,
  peers: benchPeers,
  queues: benchQueues,
  trips: benchTrips,
  charts: drawCharts,
};

export interface BenchOptions {
  /** How long each mode is measured in all. */
  readonly seconds: number;
  readonly only: string | undefined;
  /** All command line arguments, for benchmarks with their own options. */
  readonly flags: readonly string[];
}

/** `--write` keeps the results and draws the report of docs/benchmarks.md from them. */
async function benchPeers({ flags }: BenchOptions): Promise<object> {
  const results = await measurePeers(planOf(flags));
  if (flags.includes("--write")) writeResults(results);
  return results;
}

/** `--from FILE`: the report of docs/benchmarks.md again, from results that were kept. */
async function drawCharts({ flags }: BenchOptions): Promise<object> {
  const from = flags[flags.indexOf("--from") + 1] ?? "";
  writeReport(readResults(from));
  return { from };
}

const [name = "", ...flags] = process.argv.slice(2);
const bench = benches[name];
const flagValue = (flag: string): string | undefined => {
  const k = flags.indexOf(flag);
  return k < 0 ? undefined : flags[k + 1];
};
if (bench === undefined) {
  process.stderr.write(
    `usage: npm run bench -- ${Object.keys(benches).join("|")} [--json] [--seconds N] [--only sqlite|postgres]\n`,
  );
  process.exitCode = 2;
} else {
  const figures = await bench({ seconds: Number(flagValue("--seconds") ?? 6), only: flagValue("--only"), flags });
  if (flags.includes("--json")) process.stdout.write(`${JSON.stringify(figures)}\n`);
  else console.dir(figures, { depth: null });
}

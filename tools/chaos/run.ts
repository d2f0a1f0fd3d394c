// `npm run chaos -- [reactors|server|sink|push|patroni|deploy|shards] [--minutes N|--seconds N] [--store sqlite|postgres|http] [--seed S] [--report FILE] [--kills N]`:
// real processes under real faults, judged by a fake world with its own ledger. By default every round runs, on both
// stores, for that long each; `patroni`, `deploy` and `shards` (--moves N) run only when they are named, until they are over. Exit code 0:
// every rule held; 1: a rule was broken, or a fault never took effect; 2: wrong usage.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemRandom } from "../../src/base/random.ts";
import { postgresDeploy, sqliteDeploy } from "./deploy/rounds.ts";
import { postgresDisk, postgresPowerCut, sqliteDisk, sqlitePowerCut } from "./disk-rounds.ts";
import { rareStates as rareInWorld, unreachedStates } from "./evidence.ts";
import { patroni } from "./patroni/round.ts";
import { postgresPush, sqlitePush } from "./push/rounds.ts";
import { type Head, reportOf } from "./report.ts";
import type { RoundReport } from "./round.ts";
import {
  asynchronousFailover,
  groups,
  impossible,
  postgresProcesses,
  type Round,
  servers,
  sqliteProcesses,
  synchronousFailover,
} from "./rounds.ts";
import { shards } from "./shards/run.ts";
import { staleBatch } from "./sink/round.ts";
import { failoverSink, postgresSink, sqliteSink } from "./sink/rounds.ts";
import { findTools } from "./tools.ts";

const rareStates: readonly string[] = [...rareInWorld, staleBatch];

const usage =
  "usage: npm run chaos -- [reactors|server|sink|push|patroni|deploy|shards] [--minutes N|--seconds N] [--store sqlite|postgres|http] [--seed S] [--report FILE] [--kills N]";

const all: readonly Round[] = [
  sqliteProcesses,
  sqliteDisk,
  sqlitePowerCut,
  sqliteSink,
  sqlitePush,
  postgresProcesses,
  synchronousFailover,
  asynchronousFailover,
  postgresDisk,
  postgresPowerCut,
  servers,
  postgresSink,
  failoverSink,
  postgresPush,
  patroni,
  sqliteDeploy,
  postgresDeploy,
];
/** They last as long as they last. */
const byNameOnly: readonly Round["group"][] = ["patroni", "deploy"];

interface ChaosOptions {
  readonly rounds: readonly Round[];
  /** Duration of the faults on each store. */
  readonly seconds: number;
  readonly seed: string;
  readonly report: string;
  readonly kills: number;
}

function parseOptions(args: readonly string[]): ChaosOptions | undefined {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        minutes: { type: "string" },
        seconds: { type: "string" },
        store: { type: "string" },
        seed: { type: "string" },
        report: { type: "string" },
        kills: { type: "string" },
      },
    });
    const { minutes, store, seed, report } = values;
    const seconds = minutes === undefined ? Number(values.seconds ?? 60) : Number(minutes) * 60;
    const group = positionals.join(" ");
    const rounds = all.filter((round) => {
      const selected = group === "" ? !byNameOnly.includes(round.group) : group === round.group;
      // `http` selects the rounds that run through servers.
      return selected && (store === undefined || (store === "http" ? round.group === "server" : round.store === store));
    });
    if (!(seconds > 0) || rounds.length === 0 || !["", ...groups].includes(group)) return undefined;
    if (minutes !== undefined && values.seconds !== undefined) return undefined;
    const kills = Number(values.kills ?? 20);
    if (!Number.isSafeInteger(kills) || kills < 1) return undefined;
    return {
      kills,
      rounds,
      seconds,
      seed: seed ?? String(systemRandom.int(1_000_000)),
      report: report ?? join(tmpdir(), "tape-chaos-report.md"),
    };
  } catch {
    return undefined;
  }
}

interface ChaosResult {
  readonly reports: RoundReport[];
  readonly unreached: string[];
}

async function runRounds({ rounds, seconds, seed, kills, report: file }: ChaosOptions): Promise<ChaosResult> {
  const toolFolder = mkdtempSync(join(tmpdir(), "tape-chaos-tools-"));
  const tools = findTools(toolFolder);
  const reports: RoundReport[] = [];
  const unreached: string[] = [];
  const openShare = (store: Round["store"]): number =>
    rounds.filter((round) => round.store === store).reduce((sum, { share }) => sum + share, 0);
  for (const store of ["sqlite", "postgres"] as const) {
    const states: Readonly<Record<string, number>>[] = [];
    for (const round of rounds.filter((round) => round.store === store)) {
      const ms = Math.round((seconds * 1_000 * round.share) / (openShare(store) || 1));
      const folder = mkdtempSync(join(tmpdir(), "tape-chaos-"));
      console.log(`${round.name}: ${Math.round(ms / 1_000)} s of faults, seed ${seed}`);
      const progress = (line: string): void => console.log(`  ${line}`);
      const report = await round.run({ ms, seed, folder, tools, kills, progress }).catch((error: unknown) => {
        const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
        return { ...impossible(round.name, []), violations: [`the round was aborted: ${text}`] };
      });
      reports.push(report);
      if (report.faults.length > 0) states.push(report.states);
      printRound(report, folder);
      writeFileSync(file, reportOf(reports, headOf(seed, unreached))); // intermediate report, in case of an interruption
      if (report.violations.length === 0) rmSync(folder, { recursive: true, force: true });
    }
    if (states.length > 0) unreached.push(...unreachedStates(states, rareStates));
  }
  // One minute may be too short to reach the rare states; five minutes reach them on at least one store.
  const reached = reports.filter(({ faults }) => faults.length > 0).map(({ states }) => states);
  const rare = (name: string): boolean => rareStates.includes(name);
  if (seconds >= 300)
    unreached.push(
      ...unreachedStates(
        reached,
        reached.flatMap((states) => Object.keys(states)).filter((name) => !rare(name)),
      ),
    );
  rmSync(toolFolder, { recursive: true, force: true });
  return { reports, unreached };
}

function printRound({ name, violations, lines, injections, faults, notRun, lost }: RoundReport, folder: string): void {
  for (const { kind } of faults) {
    const of = injections.filter((injection) => injection.kind === kind);
    console.log(`  ${kind}: ${of.length} times, ${of.filter(({ effective }) => effective).length} effective`);
  }
  for (const { kind, why } of notRun) console.log(`  ${kind}: NOT RUN: ${why}`);
  for (const line of lines) console.log(`  ${line}`);
  if (lost.length > 0) console.log(`  lost: ${lost.join("; ")}`);
  for (const violation of violations.slice(0, 50)) console.log(`  BROKEN: ${violation}`);
  if (faults.length === 0 && violations.length === 0) return;
  console.log(
    violations.length === 0
      ? `${name}: every rule held`
      : `${name}: ${violations.length} findings; ledger and logs are in ${folder}`,
  );
}

function headOf(seed: string, unreached: readonly string[]): Head {
  const args = process.argv.slice(2).filter((arg, k, all) => arg !== "--seed" && all[k - 1] !== "--seed");
  return {
    command: `npm run chaos -- ${[...args, "--seed", seed].join(" ")}`,
    seed,
    platform: `Node ${process.version}, ${process.platform} ${process.arch}`,
    at: new Date().toISOString().slice(0, 16).replace("T", " "),
    unreached,
  };
}

async function main(options: ChaosOptions): Promise<boolean> {
  const { seed, report } = options;
  const { reports, unreached } = await runRounds(options);
  for (const line of unreached) console.log(line);
  writeFileSync(report, reportOf(reports, headOf(seed, unreached)));
  console.log(`report: ${report}`);
  return unreached.length === 0 && reports.every(({ violations }) => violations.length === 0);
}

// process.exit() runs the exit handlers, which end servers and stopped processes and unmount small disks.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    console.error(`ended by ${signal}: nothing is judged`);
    process.exit(1);
  });
}

const options = parseOptions(process.argv.slice(2));
if (process.argv[2] === "shards") {
  process.exit((await shards(process.argv.slice(3))) ? 0 : 1);
} else if (options === undefined) {
  console.error(usage);
  process.exitCode = 2;
} else process.exit((await main(options)) ? 0 : 1);

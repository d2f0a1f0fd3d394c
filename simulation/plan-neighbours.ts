import { seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";
import { type PlannedValueWrite, valueWritesOf } from "./plan-actions.ts";

/**
 * Another tenant of the same store, with a quota and the same value keys as ours, and clients that page through lists.
 */
export interface PlannedNeighbours {
  readonly actions: readonly NeighbourAction[];
  readonly walks: readonly PlannedWalk[];
}

const whats = [
  "start",
  "start",
  "start several at once",
  "start again",
  "child",
  "end",
  "end",
  "limit",
  "schedule",
  "unschedule",
  "prune",
  "put",
  "put",
  "delete",
] as const;

export interface NeighbourAction {
  readonly atMs: number;
  readonly what: (typeof whats)[number];
  /** Selects the run, key or limit. */
  readonly n: number;
}

export const walkedLists = ["runs", "runs by name", "values", "feed", "audit"] as const;

/**
 * Reads a list page by page, with a pause between pages in which other clients write. A followed feed is read as a
 * stream, and each call of it takes the pause.
 */
export interface PlannedWalk {
  readonly atMs: number;
  readonly list: (typeof walkedLists)[number] | "followed feed";
  readonly of: "us" | "neighbours";
  readonly rows: number;
  readonly pauseMs: number;
}

/** Share of plans with neighbours. */
const neighbourShare = 0.06;

export const noNeighbours: PlannedNeighbours = { actions: [], walks: [] };

/** Not with a store that goes back: it would lose what neighbours and walkers have seen. */
export function withNeighbours<P extends { readonly rewind: unknown; readonly values: readonly PlannedValueWrite[] }>(
  seed: number | string,
  plan: P,
): P & { readonly neighbours: PlannedNeighbours } {
  const random = seededRandom(`neighbours ${seed}`);
  if (plan.rewind !== undefined || !chance(random, neighbourShare)) return { ...plan, neighbours: noNeighbours };
  const actions = times(14 + random.int(12), () => ({
    atMs: random.int(12_000),
    what: pick(random, whats),
    n: random.int(60),
  }));
  const walks: PlannedWalk[] = times(3 + random.int(4), () => ({
    atMs: 500 + random.int(11_000),
    list: pick(random, walkedLists),
    of: pick(random, ["us", "neighbours"] as const),
    rows: 1 + random.int(3),
    pauseMs: pick(random, [50, 700, 700]),
  }));
  walks.push(...followersOf(seed));
  const values = plan.values.length > 0 ? plan.values : valueWritesOf(random); // the same keys as the neighbours'
  return { ...plan, values, neighbours: { actions: actions.toSorted((a, b) => a.atMs - b.atMs), walks } };
}

/** Drawn apart from the rest, which stays as it is without them. */
function followersOf(seed: number | string): PlannedWalk[] {
  const random = seededRandom(`followers ${seed}`);
  return times(1 + random.int(2), () => ({
    atMs: random.int(4_000),
    list: "followed feed",
    of: pick(random, ["us", "neighbours"] as const),
    rows: 1,
    pauseMs: pick(random, [5, 40, 300]),
  }));
}

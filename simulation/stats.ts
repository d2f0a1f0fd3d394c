import type { Evidence } from "./evidence.ts";

/** Totals of what a simulation has covered. */
export interface SimulationStats {
  readonly virtualMs: number;
  readonly events: number;
  readonly faults: number;
  /** Terms that replaced another holder's. */
  readonly takeovers: number;
  /** Rejected writes and renewals of replaced owners. */
  readonly staleRefused: number;
  /** Effects and compensations that were in doubt and are settled. */
  readonly unknownsSettled: number;
  readonly runs: number;
  /** Results that branches in lanes received, and how many of them were replayed. */
  readonly laneCalls: number;
  readonly laneReplays: number;
}

export const noStats: SimulationStats = {
  virtualMs: 0,
  events: 0,
  faults: 0,
  takeovers: 0,
  staleRefused: 0,
  unknownsSettled: 0,
  runs: 0,
  laneCalls: 0,
  laneReplays: 0,
};

const verdicts = new Set(["observed", "ABSENT", "evidence", "operator", "duplicate"]);

export function statsOf(evidence: Evidence): SimulationStats {
  const { feed, refusals, faultHits, virtualMs, events, runs, laneResults } = evidence;
  let takeovers = 0;
  let unknownsSettled = 0;
  for (const { kind, data } of feed) {
    if (kind === "term.started" && data.previous !== undefined) takeovers++;
    if ((kind === "effect.settled" || kind === "obligation.settled") && verdicts.has(data.reason ?? ""))
      unknownsSettled++;
  }
  const staleRefused = refusals.get("TAPE_FENCED") ?? 0;
  return {
    virtualMs,
    events,
    faults: faultHits.length,
    takeovers,
    staleRefused,
    unknownsSettled,
    runs: runs.length,
    laneCalls: laneResults.length,
    laneReplays: laneResults.filter(({ called }) => !called).length,
  };
}

export function sumOf(a: SimulationStats, b: SimulationStats): SimulationStats {
  const names = Object.keys(noStats) as (keyof SimulationStats)[];
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as Record<keyof SimulationStats, number>;
}

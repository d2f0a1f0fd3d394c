import type { Evidence } from "./evidence.ts";

/** What happened, in numbers: for whoever asks how much a green run has seen. */
export interface Figures {
  readonly virtualMs: number;
  readonly events: number;
  readonly faults: number;
  /** Terms that ended somebody else's. */
  readonly takeovers: number;
  /** Writes and renewals of owners that had been replaced. */
  readonly staleRefused: number;
  /** Acts and inverses that were in doubt and are not any more. */
  readonly doubtsSettled: number;
  readonly runs: number;
  /** Answers handed to branches in lanes, of which so many had been recorded in an earlier execution. */
  readonly laneAnswers: number;
  readonly laneReplays: number;
}

export const noFigures: Figures = {
  virtualMs: 0,
  events: 0,
  faults: 0,
  takeovers: 0,
  staleRefused: 0,
  doubtsSettled: 0,
  runs: 0,
  laneAnswers: 0,
  laneReplays: 0,
};

const verdicts = new Set(["observed", "ABSENT", "evidence", "operator", "duplicate"]);

export function figuresOf(evidence: Evidence): Figures {
  const { feed, refusals, bites, virtualMs, events, runs, handed } = evidence;
  let takeovers = 0;
  let doubtsSettled = 0;
  for (const { kind, data } of feed) {
    if (kind === "term.started" && data.previous !== undefined) takeovers++;
    if ((kind === "effect.settled" || kind === "obligation.settled") && verdicts.has(data.reason ?? ""))
      doubtsSettled++;
  }
  const staleRefused = refusals.get("TAPE_FENCED") ?? 0;
  return {
    virtualMs,
    events,
    faults: bites.length,
    takeovers,
    staleRefused,
    doubtsSettled,
    runs: runs.length,
    laneAnswers: handed.length,
    laneReplays: handed.filter(({ called }) => !called).length,
  };
}

export function sumOf(a: Figures, b: Figures): Figures {
  const names = Object.keys(noFigures) as (keyof Figures)[];
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as Record<keyof Figures, number>;
}

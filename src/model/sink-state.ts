import type { LeaseView } from "./lease.ts";
import type { SinkPause } from "./sink-checkpoint.ts";

/** retrying: its receiver does not accept events now. off: no process holds its lease. */
export const sinkStates = ["running", "retrying", "paused", "off"] as const;
export type SinkState = (typeof sinkStates)[number];

/** What the fan-out of a sink reports with its renewals while its receiver does not accept events. */
export const retryingNote = "retrying: ";

export function sinkStateOf(lease: LeaseView, pause: SinkPause | undefined): SinkState {
  if (pause !== undefined || lease.paused) return "paused";
  if (lease.state !== "HELD") return "off";
  return lease.progressNote?.startsWith(retryingNote) === true ? "retrying" : "running";
}

/** Why a sink needs an operator. */
export const sinkProblems = ["paused", "blocked", "late", "dead_letters", "retention"] as const;
export type SinkProblem = (typeof sinkProblems)[number];

/** A receiver that restarts is back sooner. */
const blockedMs = 60_000;
/** The alert for a late sink has the same bound. */
const lateMs = 300_000;

/** A paused sink is not also late: its pause is the cause. */
export function problemsOf(sink: {
  readonly state: SinkState;
  readonly lagMs: number;
  readonly openLetters: number;
  readonly keptRuns: number;
}): SinkProblem[] {
  const { state, lagMs, openLetters, keptRuns } = sink;
  const isBlocked = state === "retrying" && lagMs > blockedMs;
  const isLate = state !== "paused" && !isBlocked && lagMs > lateMs;
  const found: Readonly<Record<SinkProblem, boolean>> = {
    paused: state === "paused",
    blocked: isBlocked,
    late: isLate,
    dead_letters: openLetters > 0,
    retention: keptRuns > 0,
  };
  return sinkProblems.filter((problem) => found[problem]);
}

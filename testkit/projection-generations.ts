import type { Change } from "../src/model/changes.ts";
import type { EffectState, GateState, LeaseState, RunState, TimerState } from "./projection-rows.ts";
import type { RevertibleMap } from "./revertible-map.ts";

/** How the records of a run that continues as new explain the tables. */

export const openEffects: readonly string[] = ["PENDING", "DISPATCHED", "UNKNOWN", "STUCK"];
/** Of a run that has not continued as new. */
export const firstGeneration = { begins: 1, beginsPos: 0 };

type GenerationChange = Extract<
  Change,
  { do: "lease.begin" | "run.assert_continues" | "timers.withdraw" | "timers.cancel" | "gates.withdraw" }
>;
const kinds = ["lease.begin", "run.assert_continues", "timers.withdraw", "timers.cancel", "gates.withdraw"];
export const isOfGenerations = (change: Change): change is GenerationChange => kinds.includes(change.do);

interface Tables {
  readonly gates: RevertibleMap<string, GateState>;
  readonly leases: RevertibleMap<number, LeaseState>;
  readonly effects: RevertibleMap<string, EffectState>;
  readonly runs: RevertibleMap<number, RunState>;
  readonly timers: RevertibleMap<string, TimerState>;
}

const isCurrent = ({ leases }: Tables, run: number, pos: number): boolean => pos >= (leases.get(run)?.beginsPos ?? 0);

export function perform(tables: Tables, change: GenerationChange): boolean {
  switch (change.do) {
    case "lease.begin":
      return beginGeneration(tables, change);
    case "run.assert_continues":
      return continues(tables, change.journal);
    case "gates.withdraw":
      return withdrawGates(tables, change.run);
    default:
      return cancelTimers(tables, change);
  }
}

/** Whether the run is live, and every effect of its current generation is settled. */
function continues(tables: Tables, journal: number): boolean {
  const open = ({ run, pos, role, status }: EffectState): boolean =>
    run === journal && role === "effect" && openEffects.includes(status) && isCurrent(tables, run, pos);
  return tables.runs.get(journal)?.phase === "LIVE" && ![...tables.effects.values()].some(open);
}

/** All timers of a run that ends, or those that the code of its current generation has set. */
function cancelTimers(
  tables: Tables,
  change: { readonly do: "timers.withdraw" | "timers.cancel"; readonly run: number },
): boolean {
  for (const [key, { run, pos, purpose, status }] of tables.timers) {
    const byCode = purpose !== "deadline" && purpose !== "redrive" && isCurrent(tables, run, pos);
    if (run !== change.run || status !== "SET" || (change.do === "timers.withdraw" && !byCode)) continue;
    tables.timers.change(key, { status: "CANCELLED" });
  }
  return true;
}

function withdrawGates({ gates }: Tables, of: number): boolean {
  for (const [key, { run, status }] of gates)
    if (run === of && status === "OPEN") gates.change(key, { status: "WITHDRAWN" });
  return true;
}

function beginGeneration(
  { leases }: Tables,
  { journal, seq, pos, notesTaken }: Extract<Change, { do: "lease.begin" }>,
): boolean {
  const lease = leases.get(journal);
  if (lease === undefined || lease.begins >= seq || lease.beginsPos >= pos || lease.notes < notesTaken) return false;
  return leases.change(journal, { begins: seq, beginsPos: pos });
}

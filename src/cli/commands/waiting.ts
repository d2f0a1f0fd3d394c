import { describeThrown } from "../../base/thrown.ts";
import { shellWord } from "../../engine/core/report.ts";
import { describe } from "../../engine/replay/divergence.ts";
import { retryTimer } from "../../model/projection.ts";
import type { JournalRecord } from "../../model/records.ts";
import type { EffectRow, GateRow, TimerRow } from "../../model/rows.ts";
import type { QueuePosition, RunView } from "../../store/contract/store.ts";
import { lasting } from "../output.ts";
import { positionLines } from "./queue-text.ts";

export interface OpenWork {
  readonly journal: readonly JournalRecord[];
  readonly gates: readonly GateRow[];
  readonly timers: readonly TimerRow[];
  readonly effects: readonly EffectRow[];
  /** Where it is in its queue. */
  readonly position?: QueuePosition | undefined;
}

/** What an unfinished run waits for, one line each, with the command that continues it where there is one. */
export function waitsOf(run: RunView, open: OpenWork, now: number): string[] {
  const queued = open.position === undefined ? [] : positionLines(open.position, now);
  const isWaiting = open.position?.state === "QUEUED" || open.position?.state === "DELAYED";
  return isWaiting ? queued : [...queued, ...ownWaitsOf(run, open, now)];
}

function ownWaitsOf(run: RunView, { journal, gates, timers, effects }: OpenWork, now: number): string[] {
  if (run.status === "STUCK") {
    const stuck = journal.findLast(({ kind }) => kind === "run.stuck");
    return [`stuck: ${stuck?.kind === "run.stuck" ? stuck.data.reason : "the journal has no reason"}`];
  }
  const lines = [
    ...gates
      .filter(({ status }) => status === "OPEN")
      .map(({ name, openedAt, callback }) => {
        if (callback !== undefined) return `waits for callback ${name}, open for ${lasting(now - openedAt)}`;
        const send = `durable-tape signal ${shellWord(run.id)} ${shellWord(name)} --value JSON`;
        return `waits for gate ${name}, open for ${lasting(now - openedAt)}: ${send}`;
      }),
    ...timers
      .filter(({ status, purpose }) => status === "SET" && purpose !== "gate_timeout")
      .map(({ pos, purpose, dueAt }) => {
        const due = `due in ${lasting(Math.max(0, dueAt - now))}`;
        return outageLine(journal, pos, purpose, now, due) ?? `waits for a timer (${purpose}), ${due}`;
      }),
    ...effects
      .filter(({ status }) => unsettled.has(status))
      .map(({ name, pos, status, changedAt }) => {
        const effect = `${name ?? "(no compensate)"} at ${pos}`;
        return `waits for effect ${effect}: ${status} for ${lasting(now - changedAt)}`;
      }),
  ];
  if (lines.length > 0) return lines;
  if (run.lease.owner !== null) return run.status === "RUNNING" ? [executing(run, journal, now)] : [];
  const last = journal.findLast(({ kind }) => kind === "term.ended");
  const waits = last?.kind === "term.ended" ? (last.data.waitingFor ?? []) : [];
  if (waits.length > 0) return [`waits for ${waits.join(", ")}`];
  return run.status === "RUNNABLE" ? [`waits for a worker with workflow ${run.workflow}`] : [];
}

/** The next attempt of a step or decision whose upstream is down; undefined: the timer is for something else. */
function outageLine(journal: readonly JournalRecord[], pos: number, purpose: string, now: number, due: string) {
  const failed = journal.findLast((record) => record.kind === "step.failed" && record.data.pos === pos);
  if (failed?.kind !== "step.failed" || purpose !== retryTimer(failed.data.attempt)) return undefined;
  const { name, attempt, outage, error } = failed.data;
  if (outage === undefined) return undefined;
  const last = describeThrown(error).slice(0, 120);
  return `waits for attempt ${attempt + 1} of ${name}, ${due}; unreachable for ${lasting(now - outage.since)}, the last attempt failed with: ${last}`;
}

/** Steps and decisions are recorded when they end, so the holder's current operation follows from its last record. */
function executing({ lease }: RunView, journal: readonly JournalRecord[], now: number): string {
  const quietMs = now - (journal.at(-1)?.at ?? now);
  const last = journal.findLast(({ data }) => "pos" in data);
  const current = last === undefined ? "its first operation" : `the operation after ${describe(last)}`;
  return `executing ${current} (a step, a decision or its own await), no record for ${lasting(quietMs)}; the log of ${lease.label} names it (run.slow, after a minute run.hung)`;
}

const unsettled: ReadonlySet<string> = new Set(["PENDING", "DISPATCHED", "COMMITTED", "UNKNOWN", "STUCK"]);

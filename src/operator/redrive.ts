import type { Duration } from "../base/duration.ts";
import { TapeError } from "../model/errors.ts";
import { notFound } from "../model/not-found.ts";
import { redriveTimer } from "../model/projection.ts";
import type { NewRecord } from "../model/records.ts";
import type { AuditInfo, Store } from "../store/contract/store.ts";
import { laterMs } from "./later.ts";
import { type OperatorDeps, operatorAction, underManualLease } from "./manual-lease.ts";

const phases = ["LIVE", "ENDING", "COMPENSATING"] as const;

/** Who resumes a stuck run, why, and when. */
export interface RedriveRequest extends AuditInfo {
  /** After this time instead of at once. A timer resumes the run, unless it is redriven or cancelled before. */
  readonly in?: Duration;
}

/**
 * Resumes a STUCK run where it stopped, after an operator has fixed the cause. The operator's name and reason are
 * recorded under a new term, which fences any earlier holder. With `in`, that term sets a timer; its firing leaves a
 * note, and the driver that takes the note resumes the run. A later redrive replaces the timer.
 */
export async function redrive(deps: OperatorDeps, run: string, request: RedriveRequest): Promise<void> {
  const { store, tenant } = deps;
  const { in: after, ...audit } = request;
  const delayMs = after === undefined ? undefined : laterMs(`redrive of run ${run}`, after);
  await stuckRun(store, tenant, run);
  await underManualLease(deps, { run }, audit, { reactor: "recovery", condition: "any" }, async ({ head }) => {
    const { stuckFrom } = await stuckRun(store, tenant, run);
    const replaced = await setRedrives(store, tenant, run);
    if (delayMs !== undefined) {
      // The journal's head is a position that no earlier timer of the run has; it says when the timer was set.
      const timer: NewRecord = { kind: "timer.set", data: { pos: head, purpose: redriveTimer, delayMs } };
      return [operatorAction(audit, "redrive", { inMs: delayMs }), ...replaced, timer];
    }
    const to = phases.find((phase) => phase === stuckFrom) ?? "LIVE";
    return [operatorAction(audit, "redrive"), ...replaced, { kind: "run.unstuck", data: { to } }];
  });
}

/** Cancels the timers of earlier redrives. */
async function setRedrives(store: Store, tenant: string, run: string): Promise<NewRecord[]> {
  const timers = await store.read.timers(tenant, { run });
  return timers
    .filter(({ purpose, status }) => purpose === redriveTimer && status === "SET")
    .map(({ pos }) => ({ kind: "timer.cancelled", data: { pos, purpose: redriveTimer } }));
}

async function stuckRun(store: Store, tenant: string, id: string): Promise<{ readonly stuckFrom: string | null }> {
  const run = await store.read.run(tenant, id);
  if (run === undefined) throw notFound("run", id);
  if (run.status === "STUCK") return run;
  throw new TapeError("TAPE_ILLEGAL_TRANSITION", `run ${id} is ${run.status}, not STUCK`, {
    run: id,
    status: run.status,
  });
}

import { backoffMs } from "../base/backoff.ts";
import { errorFields } from "../base/reason.ts";
import { type ReactorDeps, retryBackoff } from "../engine/item/deps.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { ScheduleRow } from "../model/rows.ts";
import {
  cronOf,
  decodeSchedule,
  encodeSchedule,
  firedRun,
  pickFiring,
  planFault,
  type SchedulePlan,
} from "../model/schedule.ts";
import type { RunSpec } from "../store/contract/store.ts";
import type { ReactorCounts } from "./reactor.ts";

/** Firings of one schedule in one poll. A schedule that missed a whole night must not delay the others. */
const maxPerSchedule = 50;
/** Firings of all schedules in one poll. Timers and schedules that fall due meanwhile wait for its end. */
export const maxPerPoll = 200;
/** Concurrent firings. Other users of this store or process queue behind at most this many. */
const maxConcurrent = 8;
/** Retry delay of a firing that its tenant's quota does not admit. */
const quotaWaitMs = 15_000;
/** Delay before checking again whether the last run has ended: a tenth of its age, within these bounds. */
const overlapWaitMs = { min: 1_000, max: 15_000 };

type Outcome = { readonly done: boolean; readonly lagMs: number };

/**
 * Fires the tenant's schedules that are due. Each firing is one conditional transaction: it advances the schedule from
 * the version that was read and creates the run, whose id follows from the schedule and the time. So two replicas start
 * the run once, and a crash leaves a firing that is still due or one that has happened.
 */
export async function fireSchedules(
  deps: Pick<ReactorDeps, "store" | "log" | "random" | "tenant">,
  limit: number,
): Promise<ReactorCounts> {
  const { store, log, tenant } = deps;
  const rows = await store.read.dueSchedules(Math.min(limit, maxPerPoll), tenant);
  if (rows.length === 0) return { found: 0, done: 0, failed: 0, lagMs: 0 };
  const now = await store.read.now();
  const firings = Math.min(maxPerSchedule, Math.max(1, Math.floor(maxPerPoll / rows.length)));
  const outcomes: Outcome[] = [];
  const fire = async (row: ScheduleRow): Promise<Outcome> => {
    try {
      return await fireDue(deps, row, now, firings);
    } catch (error) {
      log("warn", "schedules.fire_failed", { ...nameOf(row), ...errorFields(error) });
      if (!isTapeError(error) || error.retry === "no") await postponeFiring(deps, row, now);
      return { done: false, lagMs: 0 };
    }
  };
  const queue = rows.values();
  const lane = async (): Promise<void> => {
    for (const row of queue) outcomes.push(await fire(row));
  };
  await Promise.all(Array.from({ length: maxConcurrent }, lane));
  const done = outcomes.filter((outcome) => outcome.done).length;
  const lagMs = Math.max(...outcomes.map((outcome) => outcome.lagMs));
  return { found: rows.length, done, failed: rows.length - done, lagMs };
}

const nameOf = ({ tenant, id }: ScheduleRow) => ({ tenant, schedule: id });

async function fireDue(
  deps: Pick<ReactorDeps, "store" | "log">,
  row: ScheduleRow,
  now: number,
  firings: number,
): Promise<Outcome> {
  let current: ScheduleRow | undefined = row;
  let lagMs = 0;
  for (let fired = 0; fired < firings && current?.nextAt != null && current.nextAt <= now; fired++) {
    const step = await nextStep(deps, current, now);
    lagMs = Math.max(lagMs, step.lagMs);
    current = await advance(deps, current, step);
    if (current === undefined) return { done: fired > 0, lagMs }; // another replica or an operator was faster
  }
  return { done: true, lagMs };
}

interface ScheduleStep {
  readonly plan: SchedulePlan;
  readonly nextAt: number | null;
  /** The firing that starts a run. */
  readonly firing?: { readonly at: number; readonly run: RunSpec };
  readonly lagMs: number;
  readonly now: number;
}

async function nextStep(
  deps: Pick<ReactorDeps, "store" | "log">,
  row: ScheduleRow,
  now: number,
): Promise<ScheduleStep> {
  const { store, log } = deps;
  const plan = decodeSchedule(row.id, row.spec);
  const fault = planFault(plan, store.limits);
  if (fault !== undefined) throw new TapeError("TAPE_BAD_SCHEDULE", fault, { id: row.id });
  const cron = cronOf(plan);
  const picked = pickFiring(plan, cron, now);
  const { at } = picked;
  const lagMs = plan.dueAt === null ? 0 : Math.max(0, now - plan.dueAt);
  if (picked.missed) {
    log("warn", "schedules.missed", { ...nameOf(row), from: plan.dueAt, to: picked.dueAt, catchUp: plan.catchUp });
  }
  if (at === undefined) return { plan: { ...plan, dueAt: picked.dueAt }, nextAt: picked.dueAt, lagMs, now };
  const after = cron.next(at) ?? null;
  const last =
    plan.overlap === "allow" || plan.lastRun === null ? undefined : await store.read.run(row.tenant, plan.lastRun);
  if (last !== undefined && last.endedAt === null) {
    if (plan.overlap === "wait") {
      const inMs = Math.min(overlapWaitMs.max, Math.max(overlapWaitMs.min, Math.round((now - last.createdAt) / 10)));
      return { plan: { ...plan, dueAt: at }, nextAt: now + inMs, lagMs: 0, now };
    }
    log("info", "schedules.skipped", { ...nameOf(row), at, lastRun: plan.lastRun, status: last.status });
    return { plan: { ...plan, dueAt: after }, nextAt: after, lagMs, now };
  }
  const run = firedRun(row.id, plan, at);
  return { plan: { ...plan, dueAt: after, lastRun: run.id }, nextAt: after, firing: { at, run }, lagMs, now };
}

/** Returns the row after the step; undefined: another writer changed the row first. */
async function advance(
  deps: Pick<ReactorDeps, "store" | "log">,
  row: ScheduleRow,
  step: ScheduleStep,
): Promise<ScheduleRow | undefined> {
  const { store, log } = deps;
  const write = async (plan: SchedulePlan, runs: readonly RunSpec[]): Promise<ScheduleRow | undefined> => {
    const spec = { from: row.spec, to: encodeSchedule(plan) };
    const { tenant, id, version } = row;
    const fired = await store.intake.fireSchedule(tenant, id, version, step.nextAt, runs, spec);
    return fired ? { ...row, version: version + 1, spec: spec.to, nextAt: step.nextAt } : undefined;
  };
  const { firing, plan } = step;
  if (firing === undefined) return write(plan, []);
  const { at, run } = firing;
  try {
    const after = await write(plan, [run]);
    if (after !== undefined) log("info", "schedules.fired", { ...nameOf(row), run: run.id, lateMs: step.lagMs });
    return after;
  } catch (error) {
    // The run was started once and has been pruned since: this firing is done.
    if (isTapeError(error, "TAPE_RUN_GONE")) return write(plan, []);
    if (isTapeError(error, "TAPE_QUOTA")) return postpone(deps, row, step, error);
    if (!isTapeError(error) || !refusals.has(error.code)) throw error;
    const { code, message } = error;
    log("error", "schedules.refused", { ...nameOf(row), run: run.id, code, error: message });
    const { lastRun } = decodeSchedule(row.id, row.spec);
    return write({ ...plan, lastRun, lastError: { at, code, message } }, []);
  }
}

/** The firing stays due. It is retried when the quota may admit it, by the catch-up rules. */
async function postpone(
  { store, log }: Pick<ReactorDeps, "store" | "log">,
  row: ScheduleRow,
  { firing, now }: ScheduleStep,
  { code, message }: TapeError,
): Promise<ScheduleRow | undefined> {
  const { at } = firing!;
  const before = decodeSchedule(row.id, row.spec);
  const nextAt = now + quotaWaitMs;
  log("warn", "schedules.postponed", { ...nameOf(row), run: firing!.run.id, until: nextAt, code, error: message });
  const spec = { from: row.spec, to: encodeSchedule({ ...before, dueAt: at, lastError: { at, code, message } }) };
  const { tenant, id, version } = row;
  const written = await store.intake.fireSchedule(tenant, id, version, nextAt, [], spec);
  return written ? { ...row, version: version + 1, spec: spec.to, nextAt } : undefined;
}

/** No retry can start such a run: its id belongs to another run, or its input is invalid. The schedule continues. */
const refusals: ReadonlySet<string> = new Set([
  "TAPE_RUN_CONFLICT",
  "TAPE_BAD_INPUT",
  "TAPE_TOO_LARGE",
  "TAPE_NOT_ENCODABLE",
]);

/** Postpones a schedule that cannot be read; otherwise it would be first in every poll. Its spec keeps what is due. */
async function postponeFiring(
  deps: Pick<ReactorDeps, "store" | "random" | "log">,
  row: ScheduleRow,
  now: number,
): Promise<void> {
  const { store, random, log } = deps;
  const nextAt = now + Math.ceil(backoffMs(parkedAttempt, retryBackoff, random));
  const parked = await store.intake.fireSchedule(row.tenant, row.id, row.version, nextAt, []).catch(() => false);
  if (parked) log("error", "schedules.parked", { ...nameOf(row), until: nextAt });
}

/** The number of earlier tries is not recorded. This backoff step is about a minute. */
const parkedAttempt = 7;

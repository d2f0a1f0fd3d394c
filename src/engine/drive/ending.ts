import { backoffMs } from "../../base/backoff.ts";
import { errorFields } from "../../base/reason.ts";
import { type FailedResult, isInterrupted, unknownAfterCrash, unknownAtEnd, verdictOf } from "../../model/attempt.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { NewRecord, RecordData } from "../../model/records.ts";
import type { EffectRow } from "../../model/rows.ts";
import { effectRefOf } from "../../model/rows.ts";
import { settlesEarlierAttempts } from "../../sdk/outcomes.ts";
import { retryOf } from "../../sdk/validate.ts";
import { asRecorded } from "../core/as-recorded.ts";
import type { DriveHandle, RunResult } from "../core/handle.ts";
import { reportEnded } from "../core/report.ts";
import { unresolved, unresolvedEffectError } from "../core/stuck-records.ts";
import { deniedCall, resultIn } from "../effects/evidence.ts";
import { confirmationRecords } from "../effects/inline.ts";
import { type EffectState, foldHistory } from "../replay/history.ts";
import { asStored, toStoredError } from "../replay/stored-value.ts";
import { readRecords } from "./generation.ts";

export interface RunOutcome {
  readonly cause: "completed" | "failed" | "cancelled";
  readonly outcome: unknown;
  /** A retry would not help. */
  readonly final?: boolean;
}

const statusOf = { completed: "COMPLETED", failed: "FAILED", cancelled: "CANCELLED" } as const;

/**
 * Takes a run from its outcome to its end. First the outcome is decided, which withdraws effects that surely never
 * happened. Then the run waits until no effect is in doubt and every child has ended, and until its obligations are
 * compensated. Then it ends. If nothing is open, all of that is one record.
 */
export async function closeRun(drive: DriveHandle, decided?: RunOutcome): Promise<void> {
  const earlier = drive.history.decided;
  if (earlier !== undefined) return finishEnding(drive, earlier);
  if (decided === undefined) throw new TapeError("TAPE_INVARIANT", "a run cannot close without an outcome");
  const { cause } = decided;
  if (cause === "failed" && decided.final !== true && (await scheduleRetry(drive, decided.outcome))) return;
  const outcome = storedOutcome(drive, decided);
  const refusal = await tryEnd(drive, { status: statusOf[cause], outcome });
  if (refusal === undefined || drive.finished) return;
  if (isTapeError(refusal, "TAPE_TOO_LARGE") || isTapeError(refusal, "TAPE_NOT_ENCODABLE")) {
    return closeRun(drive, { cause: "failed", outcome: refusal, final: true });
  }
  const decision: NewRecord = { kind: "run.decided", data: { cause, outcome } };
  await drive.journal.appendExclusive([...drive.reservations.closingRecords(drive.root), decision]);
  await finishEnding(drive, { cause, outcome });
}

/** `null` stands for undefined, because a run that has ended always has an outcome. */
function storedOutcome(drive: DriveHandle, { cause, outcome }: RunOutcome): unknown {
  const isError = cause !== "completed" && outcome instanceof Error;
  const stored = isError ? toStoredError(outcome) : outcome === undefined ? null : asStored(outcome);
  return asRecorded(drive, "run.ended", "outcome", stored);
}

/** Schedules another drive of a run that threw, if its workflow has a retry; the failed operation is then retried. */
async function scheduleRetry(drive: DriveHandle, error: unknown): Promise<boolean> {
  const { runner, random, log, runId } = drive.options;
  const { workflow } = drive.history.created;
  const { attempts, backoff } = retryOf(`workflow ${workflow}`, runner.workflows.get(workflow)!.retry, 1);
  const attempt = drive.history.retries + 1;
  if (attempt >= attempts) return false;
  const delayMs = Math.ceil(backoffMs(attempt, backoff, random));
  log("warn", "run.retried", { run: runId, workflow, attempt, attempts, delayMs, ...errorFields(error) });
  const data = { attempt, error: toStoredError(error), delayMs, ...drive.context.failureBehind(error) };
  const park = (): Promise<void> =>
    drive.parkWith(
      () => [{ kind: "run.retried", data }, drive.termEnded(["a retry"], { nextReactor: "recovery", delayMs })],
      park,
    );
  await park();
  return true;
}

/** What blocks the end is usually settled within one or two retries. After eight refusals the run parks for 30 s. */
const refusedBackoff = { baseMs: 20, capMs: 1_000 };
const maxRefusals = 8;
const refusedAgainMs = 30_000;

async function finishEnding(
  drive: DriveHandle,
  decided: Pick<RunOutcome, "cause" | "outcome">,
  refusals = 0,
): Promise<void> {
  const { store, tenant, runId } = drive.options;
  const { cause, outcome } = decided;
  const retry = (): Promise<void> => finishEnding(drive, decided);
  const run = await store.read.run(tenant, runId);
  if (drive.finished) return;
  if (run?.status !== "COMPENSATING") {
    const refusal = await tryEnd(drive, { status: statusOf[cause], outcome });
    if (refusal === undefined || drive.finished) return;
    if (await parkForOpenWork(drive, retry)) return;
    if (cause === "completed") {
      if (await parkForObligations(drive, retry)) return;
      return retryEnding(drive, decided, refusal, refusals + 1);
    }
    await drive.journal.appendExclusive([{ kind: "run.compensating", data: {} }]).catch((error: unknown) => {
      if (isTapeError(error, "TAPE_RUN_UNSETTLED")) return;
      throw error;
    });
  }
  const refusal = await tryEnd(drive, { status: "COMPENSATED", outcome });
  if (refusal === undefined || drive.finished) return;
  const stuck = await unsettledObligations(drive, ["STUCK"]);
  if (stuck.length > 0)
    return drive.markStuck(unresolvedEffectError(unresolved(stuck[0]!), true), stuck.map(effectRefOf), retry);
  await drive.parkWith(() => [drive.termEnded(["compensation"])], retry);
}

/**
 * The store reports open work, but a read finds none: it has been settled meanwhile, and the next try succeeds. There
 * is a pause before each try and a limit for this term, because a run that cannot end must not keep a core busy.
 */
async function retryEnding(
  drive: DriveHandle,
  decided: Pick<RunOutcome, "cause" | "outcome">,
  refusal: TapeError,
  refusals: number,
): Promise<void> {
  const { clock, random, log, runId } = drive.options;
  if (refusals < maxRefusals) {
    await clock.sleep(backoffMs(refusals, refusedBackoff, random), drive.abortSignal);
    return drive.finished ? undefined : finishEnding(drive, decided, refusals);
  }
  log("warn", "run.end_refused", { run: runId, error: refusal.message, delayMs: refusedAgainMs });
  const later = { nextReactor: "recovery", delayMs: refusedAgainMs };
  await drive.parkWith(
    () => [drive.termEnded(["the end"], later)],
    () => finishEnding(drive, decided),
  );
}

/** true: parked or STUCK, because a compensation that an operator requested has not finished. */
async function parkForObligations(drive: DriveHandle, retry: () => Promise<void>): Promise<boolean> {
  const owed = await unsettledObligations(drive, ["PENDING", "COMMITTED", "UNKNOWN", "STUCK"]);
  if (owed.length === 0) return false;
  const stuck = owed.filter(({ status }) => status === "STUCK");
  if (stuck.length > 0)
    await drive.markStuck(unresolvedEffectError(unresolved(stuck[0]!), true), stuck.map(effectRefOf), retry);
  else await drive.parkWith(() => [drive.termEnded(["compensation"])], retry);
  return true;
}

/**
 * Settles inline effects whose attempt a crash interrupted, or that await a retry and may have happened. A run that is
 * ending sends nothing. Late evidence counts; otherwise the reconciler observes. The journal is read again, because the
 * history of this drive ends where the drive started.
 */
async function abandonAttempts(drive: DriveHandle, open: readonly EffectRow[]): Promise<void> {
  const records = await readRecords(drive.options);
  if (drive.finished) return;
  const { effects } = foldHistory(records, []);
  for (const { pos, status } of open) {
    const effect = effects.get(pos)!;
    if (status === "PENDING") {
      const data = { pos, ...unknownAtEnd, failures: effect.failures };
      await drive.journal.append([{ kind: "effect.settled", data }]);
      continue;
    }
    const definition = drive.options.runner.effects.get(effect.intended.name);
    const evidence = drive.waits.evidenceFor(pos, effect.token);
    if (evidence?.happened && definition !== undefined) {
      await drive.journal.append(confirmationRecords(drive, definition, pos, effect.intended.args, resultIn(evidence)));
    } else {
      const denied = evidence?.happened === false ? deniedCall(evidence.error) : undefined;
      await drive.journal.append([{ kind: "effect.settled", data: { pos, ...abandonedAs(effect, denied) } }]);
    }
  }
}

function abandonedAs(effect: EffectState, denied: FailedResult | undefined): Omit<RecordData<"effect.settled">, "pos"> {
  const { failures, intended } = effect;
  const { semantics } = intended;
  if (denied === undefined) return { ...unknownAfterCrash, failures };
  const { kind, error } = denied;
  const settlesEarlier = settlesEarlierAttempts(error, semantics);
  const facts = { semantics, attempts: 0, settlesEarlier, interrupted: isInterrupted(error), history: effect };
  const { to, reason, history } = verdictOf(kind, facts);
  return { to, reason, error, failures: history.failures };
}

/** true: parked, STUCK or ended meanwhile, because an effect or a child of the run was not settled. */
async function parkForOpenWork(drive: DriveHandle, retry: () => Promise<void>): Promise<boolean> {
  const { store, tenant, runId, lease } = drive.options;
  const status = ["STUCK", "DISPATCHED", "UNKNOWN", "PENDING"];
  const effects = await store.read.effects(tenant, { run: runId, role: "effect", status });
  const abandoned = effects.filter(({ authority }) => authority === lease.term.journal);
  if (abandoned.length > 0) {
    await abandonAttempts(drive, abandoned);
    if (!drive.finished) await retry();
    return true;
  }
  const stuck = effects.filter(({ status }) => status === "STUCK");
  if (stuck.length > 0) {
    await drive.markStuck(unresolvedEffectError(unresolved(stuck[0]!), false), stuck.map(effectRefOf), retry);
    return true;
  }
  const children = await liveChildren(drive);
  for (const child of children) {
    await store.intake.cancel(tenant, child, { reason: "the parent run is ending" }).catch((error: unknown) => {
      if (!isTapeError(error, "TAPE_RUN_ENDED")) throw error;
    });
  }
  if (effects.length === 0 && children.length === 0) return false;
  const waits = [...effects.map(({ name }) => `effect ${name}`), ...children.map((child) => `child ${child}`)];
  await drive.parkWith(() => [drive.termEnded(waits)], retry);
  return true;
}

/** Obligations of the run and of all runs below it: it also waits for those of its finished children. */
function unsettledObligations(drive: DriveHandle, status: readonly string[]): Promise<EffectRow[]> {
  const { store, tenant, lease } = drive.options;
  return store.read.effects(tenant, { root: drive.root, below: lease.term.journal, status });
}

async function liveChildren(drive: DriveHandle): Promise<string[]> {
  const { store, tenant } = drive.options;
  const runs = await Promise.all([...drive.children].map((id) => store.read.run(tenant, id)));
  return runs.flatMap((run) => (run !== undefined && run.endedAt === null ? [run.id] : []));
}

/** undefined: the run has ended; otherwise the error. Pending notes are taken first; they change nothing any more. */
async function tryEnd(drive: DriveHandle, end: RunResult): Promise<TapeError | undefined> {
  const { lease, runId, runner } = drive.options;
  const { parent, workflow } = drive.history.created;
  const retainMs = runner.workflows.get(workflow)?.retainMs;
  for (;;) {
    const data = {
      ...end,
      notesTaken: drive.waits.notesTaken,
      term: lease.stats(),
      ...(retainMs !== undefined && parent === undefined && { retainMs }),
      ...(parent === undefined ? {} : { parent: { ...parent, id: runId } }),
    };
    try {
      await drive.journal.appendExclusive([
        ...drive.reservations.closingRecords(drive.root),
        { kind: "run.ended", data },
      ]);
      drive.settled = end;
      reportEnded(drive, end);
      drive.finish("ended");
      lease.end("the run has ended");
      return undefined;
    } catch (error) {
      if (!isTapeError(error)) throw error;
      if (error.code !== "TAPE_NOTES_PENDING") return error;
      await drive.takeLateNotes();
    }
  }
}

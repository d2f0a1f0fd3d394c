import type { FeedRecord } from "../../src/store/contract/store.ts";
import { startWallMs } from "../../testkit/kit/virtual-time.ts";
import type { Evidence } from "../evidence.ts";
import { type TrialCall, type TrialOp, trialStallMs } from "../trials.ts";
import { recordsOf } from "./journal.ts";
import { each, exempt, type Invariant, notApplicable, settles } from "./judge.ts";

interface Trial {
  readonly op: TrialOp;
  readonly journal: number;
  readonly calls: readonly TrialCall[];
  /** Its records in the run's journal. */
  readonly records: readonly FeedRecord[];
}

function trialsOf(evidence: Evidence): Trial[] {
  const { trialCalls, runs } = evidence;
  return [...Map.groupBy(trialCalls, ({ run, trial }) => `${run} ${trial.name}`).values()].flatMap((calls) => {
    const { run, trial: op } = calls[0]!;
    const journal = runs.find(({ id }) => id === run)?.journal;
    if (journal === undefined) return [];
    const own = recordsOf(evidence, journal).filter(({ data }) => (data as { name?: unknown }).name === op.name);
    return [{ op, journal, calls, records: own }];
  });
}

const failedAttempts = (records: readonly FeedRecord[]): number[] =>
  records.flatMap((record) => (record.kind === "step.failed" ? [record.data.attempt] : []));

/** Each failed attempt has a record, in order, over all terms; and no more attempts start than the policy allows. */
export const attemptsAreCounted: Invariant = (evidence) => {
  if (evidence.plan.rewind !== undefined) return notApplicable; // the store forgets attempts
  return each(trialsOf(evidence), ({ op, records, calls }) => {
    const failed = failedAttempts(records);
    const faults = failed.some((attempt, k) => attempt !== k + 1)
      ? [`${op.name} has records of the attempts ${failed.join(", ")}`]
      : [];
    const bounded = op.giveUpAfterMs === undefined;
    if (bounded && failed.length >= op.attempts) faults.push(`${op.name} was retried ${failed.length} times`);
    for (const { attempt, at, process } of calls) {
      // An attempt may fail in the millisecond in which it started.
      const before = failedAttempts(records.filter((record) => record.at < Math.floor(at))).length;
      const until = failedAttempts(records.filter((record) => record.at <= at)).length;
      if (bounded && attempt > op.attempts) faults.push(`${op.name} was attempted ${attempt} times`);
      if (attempt <= before || attempt > until + 1)
        faults.push(`${process} started attempt ${attempt} of ${op.name} after ${until} failures`);
    }
    return faults;
  });
};

/**
 * An outage never fails a run. It makes the run STUCK, neither earlier nor later than it may, and then no attempt starts before an
 * operator has resumed the run.
 */
export const outagesPark: Invariant = (evidence) => {
  const { plan } = evidence;
  if (plan.rewind !== undefined) return notApplicable; // the store forgets attempts
  return each(trialsOf(evidence), ({ op, journal, records, calls }) => {
    const { giveUpAfterMs } = op;
    if (giveUpAfterMs === undefined) return exempt;
    const ended = records.some((one) => (one.data as { readonly error?: unknown }).error && one.kind !== "step.failed");
    const faults = ended ? [`${op.name} has failed instead of waiting`] : [];
    const unstuck = recordsOf(evidence, journal).filter(({ kind }) => kind === "run.unstuck");
    let first: FeedRecord | undefined;
    let pausesMs = 0;
    for (const record of records) {
      if (record.kind !== "step.failed") continue;
      first ??= record;
      pausesMs += record.data.delayMs;
      if (pausesMs > giveUpAfterMs) faults.push(`${op.name} paused for ${pausesMs} ms in one outage`);
      if (record.data.outage?.gaveUp !== true) continue;
      // A store whose clock was set cannot tell how long it took.
      const tookMs = plan.wallStep === undefined ? record.at - first.at : giveUpAfterMs;
      if (tookMs < giveUpAfterMs - 1) faults.push(`${op.name} was given up after ${tookMs} ms`);
      const resumed = unstuck.find(({ seq }) => seq > record.seq);
      const early = calls.filter(({ attempt, at }) => attempt > record.data.attempt && !(resumed && resumed.at <= at));
      faults.push(...early.map(({ process }) => `${process} called ${op.name} although it was given up`));
      [first, pausesMs] = [undefined, 0];
    }
    return faults;
  });
};

/** How long the process was paused between two moments. */
function pausedMs({ faultHits, healedAt }: Evidence, process: string, from: number, to: number): number {
  return faultHits.reduce((sum, { fault: { kind, replica, forMs }, at }) => {
    if (kind !== "pause" || !process.startsWith(`${replica}.`)) return sum;
    const begin = startWallMs + at;
    const end = Math.min(begin + (forMs ?? Number.POSITIVE_INFINITY), healedAt ?? Number.POSITIVE_INFINITY);
    return sum + Math.max(0, Math.min(end, to) - Math.max(begin, from));
  }, 0);
}

/**
 * No result comes from a call that returned after its time-out: neither by its signal, nor by the time for which its
 * process was running. A pause stops the timer together with the body, and may then let the body return first.
 */
export const lateResultsAreDropped: Invariant = (evidence) =>
  each(trialsOf(evidence), ({ op, records, calls }) => {
    const { timeoutMs } = op;
    const done = records.find(({ kind }) => kind === "step.done" || kind === "decision.made");
    if (timeoutMs === undefined || done === undefined) return exempt;
    const { value } = done.data as { readonly value?: unknown };
    const call = calls.find((one) => one.value === value);
    if (call === undefined) return value === undefined ? [] : [`${op.name} has a result that no call returned`];
    const { process, at, endedAt = Number.POSITIVE_INFINITY, late } = call;
    const tookMs = endedAt - at - pausedMs(evidence, process, at, endedAt);
    const faults = late ? [`${op.name} has a result that came after the signal of its time-out`] : [];
    if (tookMs > timeoutMs) faults.push(`${op.name} has the result of a call of ${tookMs} ms, after its time-out`);
    return faults;
  });

/** The longest pause of an idle process between two polls, and a margin for travel. */
const pollMs = 5_000 + 2_000;

/** Without loops: alarms are up to 20 s apart, a refused one is repeated, and each may call the process that yields. */
const alarmsMs = 80_000;
/** How long a process without loops leaves runs to others once it knows that one has stalled. */
const yieldMs = 30_000;

/**
 * A process that renews but whose body does not return loses the run in time, to another process, and its late result is
 * not written. Without loops, the end of its request may come first, and chance decides which process is called next.
 */
export const wedgedLoses: Invariant = (evidence) =>
  each(trialsOf(evidence), ({ op, journal, calls, records }) => {
    if (op.wedgeMs === undefined) return exempt;
    const [first] = calls;
    const { serverless, ttlMs, travelMs } = evidence.plan;
    if (serverless !== undefined && !settles(evidence)) return exempt; // cut off before the last alarm
    const { process, at, value } = first!;
    const isLost = ({ kind, data, at: then }: FeedRecord): boolean =>
      (kind === "term.started" && data.reason === "stalled") ||
      (serverless !== undefined && kind === "term.ended" && data.reason === "drained" && then > at);
    const left = recordsOf(evidence, journal).find(isLost);
    const boundMs = trialStallMs + ttlMs / 3 + pollMs + 2 * travelMs + (serverless === undefined ? 0 : alarmsMs);
    const tookMs = (left?.at ?? Number.POSITIVE_INFINITY) - at;
    const faults = tookMs <= boundMs ? [] : [`${process} kept ${op.name} for ${tookMs} ms`];
    const isForbidden = (then: number): boolean =>
      serverless === undefined || (left?.kind === "term.started" && then < at + trialStallMs + yieldMs);
    const again = calls.filter((one) => one.process === process && one.at > at && isForbidden(one.at));
    faults.push(...again.map(() => `${process}, which was wedged, took ${op.name} again`));
    const late = records.some(({ data }) => (data as { value?: unknown }).value === value);
    return late ? [...faults, `the result of ${process}, which was wedged, was written`] : faults;
  });

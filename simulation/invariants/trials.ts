import type { FeedRecord } from "../../src/store/contract/store.ts";
import { startWallMs } from "../../testkit/kit/virtual-time.ts";
import type { Evidence } from "../evidence.ts";
import { type TrialCall, type TrialOp, trialStallMs } from "../trials.ts";
import { recordsOf } from "./journal.ts";
import { each, exempt, type Invariant, notApplicable } from "./judge.ts";

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
    if (failed.length >= op.attempts) faults.push(`${op.name} was retried ${failed.length} times`);
    for (const { attempt, at, process } of calls) {
      // An attempt may fail in the millisecond in which it started.
      const before = failedAttempts(records.filter((record) => record.at < Math.floor(at))).length;
      const until = failedAttempts(records.filter((record) => record.at <= at)).length;
      if (attempt > op.attempts) faults.push(`${op.name} was attempted ${attempt} times`);
      if (attempt <= before || attempt > until + 1)
        faults.push(`${process} started attempt ${attempt} of ${op.name} after ${until} failures`);
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

/**
 * A process that renews but whose body does not return loses the run in time, to another process, and its late result is
 * not written.
 */
export const wedgedLoses: Invariant = (evidence) =>
  each(trialsOf(evidence), ({ op, journal, calls, records }) => {
    if (op.wedgeMs === undefined) return exempt;
    const [first] = calls;
    const { plan } = evidence;
    const stalled = recordsOf(evidence, journal).find(
      (record) => record.kind === "term.started" && record.data.reason === "stalled",
    );
    const boundMs = trialStallMs + plan.ttlMs / 3 + pollMs + 2 * plan.travelMs;
    const tookMs = (stalled?.at ?? Number.POSITIVE_INFINITY) - first!.at;
    const faults = tookMs <= boundMs ? [] : [`${first!.process} kept ${op.name} for ${tookMs} ms`];
    const again = calls.filter(({ process, at }) => process === first!.process && at > first!.at);
    faults.push(...again.map(({ process }) => `${process}, which was wedged, took ${op.name} again`));
    const late = records.some(({ data }) => (data as { value?: unknown }).value === first!.value);
    return late ? [...faults, `the result of ${first!.process}, which was wedged, was written`] : faults;
  });

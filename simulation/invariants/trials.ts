import type { FeedRecord } from "../../src/store/contract/store.ts";
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

/** No result comes from a call that took longer than the time-out. */
export const lateResultsAreDropped: Invariant = (evidence) =>
  each(trialsOf(evidence), ({ op, records, calls }) => {
    const { timeoutMs } = op;
    const done = records.find(({ kind }) => kind === "step.done" || kind === "decision.made");
    if (timeoutMs === undefined || done === undefined) return exempt;
    const { value } = done.data as { readonly value?: unknown };
    const call = calls.find((one) => one.value === value);
    if (call === undefined) return value === undefined ? [] : [`${op.name} has a result that no call returned`];
    const tookMs = (call.endedAt ?? Number.POSITIVE_INFINITY) - call.at;
    return tookMs <= timeoutMs ? [] : [`${op.name} has the result of a call of ${tookMs} ms, after its time-out`];
  });

/** The longest pause of an idle process between two polls, and a margin for travel. */
const pollMs = 5_000 + 2_000;

/** A process that renews but whose body does not return loses the run in time, and its late result is not written. */
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
    const late = records.some(({ data }) => (data as { value?: unknown }).value === first!.value);
    return late ? [...faults, `the result of ${first!.process}, which was wedged, was written`] : faults;
  });

import { decode } from "../../src/base/codec.ts";
import type { EffectRow } from "../../src/model/rows.ts";
import { NotSent } from "../../src/sdk/outcomes.ts";
import type { FeedRecord } from "../../src/store/contract/store.ts";
import type { BodyCall } from "../../testkit/kit/runner.ts";
import type { Evidence } from "../evidence.ts";
import { recordsOf } from "./journal.ts";
import { across, combine, each, exempt, type Invariant, notApplicable, settles } from "./judge.ts";

interface EffectHistory {
  readonly effect: EffectRow;
  /** Its records in the run's and in the item's journal, as in the feed. */
  readonly records: readonly FeedRecord[];
  readonly calls: readonly BodyCall[];
  /** How often the fake upstream applied it. */
  readonly applied: number;
}

const cache = new WeakMap<Evidence, readonly EffectHistory[]>();

/** What is known of each effect, collected once for all invariants. */
function histories(evidence: Evidence): readonly EffectHistory[] {
  const known = cache.get(evidence) ?? collectHistories(evidence);
  cache.set(evidence, known);
  return known;
}

function collectHistories(evidence: Evidence): EffectHistory[] {
  const { effects, calls, world } = evidence;
  return effects.map((effect) => {
    const { run, pos, sub, key, item } = effect;
    const all = [...recordsOf(evidence, run), ...(item === null ? [] : recordsOf(evidence, item))];
    const records = all.filter((record) => {
      if (!record.kind.startsWith("effect.") && !record.kind.startsWith("obligation.")) return false;
      const data = record.data as { run?: number; pos?: number; sub?: number };
      if (data.pos !== pos || (data.sub ?? 0) !== sub) return false;
      return record.journal === item || (data.run ?? run) === run;
    });
    const own = calls.filter((call) => call.key === key && call.role !== "observe");
    return { effect, records, calls: own, applied: world.filter((one) => one.key === key && one.applied).length };
  });
}

const name = ({ effect }: EffectHistory): string => `${effect.name} (${effect.key})`;
const verdicts = new Set(["CONFIRMED", "FAILED", "COMPENSATED"]);
const settledTo = (record: FeedRecord): string | undefined =>
  record.kind === "effect.settled" || record.kind === "obligation.settled" ? record.data.to : undefined;

export const oneVerdict: Invariant = (evidence) =>
  each(histories(evidence), (history) => {
    const settled = history.records.flatMap((record) => settledTo(record) ?? []);
    const first = settled.findIndex((to) => verdicts.has(to));
    if (first < 0) return exempt;
    return first === settled.length - 1 ? [] : [`${name(history)} was settled again: ${settled.join(", ")}`];
  });

/** The process was paused between the last check of its lease and the call: no lease can close that window. */
const wasStopped = ({ requestedAt, at }: BodyCall): boolean => requestedAt < at;

/** A paused sender may call after the deadline and the settle delay, when no observation can expect it. */
const lateMs = 4_000 + 12_000;

export const verdictMatchesWorld: Invariant = (evidence) =>
  each(histories(evidence), (history) => {
    const { effect, applied, records, calls } = history;
    const { status } = effect;
    if (effect.semantics === "read") return exempt;
    if (status === "CONFIRMED" || status === "COMPENSATED") {
      if (effect.name === null) return exempt; // it has no compensate: an operator compensated it outside the ledger
      return applied > 0 ? [] : [`${name(history)} is ${status}, but was never applied`];
    }
    if (status !== "FAILED") return exempt;
    if (applied === 0) return [];
    const dispatched = records.findLast(({ kind }) => kind === "effect.dispatched")?.at ?? 0;
    const late = evidence.world.some((one) => one.key === effect.key && one.applied && one.at > dispatched + lateMs);
    return late && calls.some(wasStopped) ? exempt : [`${name(history)} is FAILED (${effect.reason}), but was applied`];
  });

/** An effect that happened in a run that did not complete is compensated, and never withdrawn. */
export const happenedIsKnown: Invariant = (evidence) =>
  each(histories(evidence), (history) => {
    const { effect, applied } = history;
    const { status } = effect;
    if (effect.role !== "effect" || effect.semantics === "read" || applied === 0) return exempt;
    const run = evidence.runs.find(({ journal }) => journal === effect.run)!;
    if (status === "WITHDRAWN") return [`${name(history)} is WITHDRAWN (${effect.reason}), but was applied`];
    // FAILED is judged by verdictMatchesWorld.
    if (run.endedAt === null || run.status === "COMPLETED" || status === "FAILED") return exempt;
    return ["CONFIRMED", "UNKNOWN", "STUCK"].includes(status)
      ? []
      : [`${run.id} is ${run.status}, but ${name(history)} happened and is ${status}`];
  });

export const nonIdempotentOnce: Invariant = (evidence) =>
  each(histories(evidence), (history) => {
    const { effect, applied, calls } = history;
    if (effect.semantics !== "non_idempotent" || calls.length + applied === 0) return exempt;
    // A compensation is repeated once it was observed as absent. A sender paused just before its call may then come on
    // top.
    if (effect.role === "compensation" && calls.some(wasStopped)) return exempt;
    // So is an effect that was proven absent: it is sent again.
    const late = history.records.some(isResend) && calls.some(wasStopped);
    const faults = applied > 1 && !late ? [`${name(history)} was applied ${applied} times`] : [];
    // A sender that was stopped just before its call sends on top of the attempt that replaced its own.
    const uncertain = calls.filter(
      (call) =>
        !(call.result !== undefined && "error" in call.result && call.result.error instanceof NotSent) &&
        !(late && wasStopped(call)),
    );
    const repeated = uncertain
      .slice(0, -1)
      .filter((call) => !observedAbsent(history, call) && !retriedByOperator(history, call));
    return repeated.length === 0 ? faults : [...faults, `${name(history)} was called again while UNKNOWN`];
  });

/** An operator checked the upstream and had the effect retried. */
const retriedByOperator = ({ records }: EffectHistory, { at }: BodyCall): boolean =>
  records.some((r) => settledTo(r) === "PENDING" && (r.data as { reason: string }).reason === "operator" && r.at >= at);

/** It may be sent again once an observation after the deadline and the settle delay reports it absent. */
const observedAbsent = ({ effect, records }: EffectHistory, call: BodyCall): boolean =>
  records.some((record) => {
    if (record.at < call.requestedAt) return false;
    return effect.role === "effect"
      ? isResend(record)
      : record.kind === "obligation.settled" && record.data.to === "PENDING";
  });

const isResend = (record: FeedRecord): boolean =>
  record.kind === "effect.settled" && record.data.to === "PENDING" && record.data.reason === "ABSENT";

/** More than this many times an effect is not sent again, as its policy says. */
const maxResends = 3;

/**
 * The absence is proven: a final observation, or one that started after the last attempt's send window and the settle
 * delay. A record is written after its observation started, so it can only be later.
 */
function isProven({ effect, records }: EffectHistory, resend: FeedRecord): boolean {
  const before = records.filter(
    ({ journal, seq, at }) => at <= resend.at && (journal !== resend.journal || seq < resend.seq),
  );
  const seen = before.findLast(({ kind }) => kind === "effect.observed");
  const sent = before.findLast(({ kind }) => kind === "effect.dispatched");
  if (seen?.kind !== "effect.observed" || sent?.kind !== "effect.dispatched") return false;
  if (seen.data.observation !== "absent") return false;
  const { settleMs = 0 } = (effect.policy === null ? {} : decode(effect.policy)) as { readonly settleMs?: number };
  const { final } = seen.data.detail as { readonly final?: boolean };
  return final === true || resend.at >= sent.at + sent.data.sendWithinMs + settleMs;
}

export const idempotentOnce: Invariant = (evidence) =>
  each(histories(evidence), (history) => {
    if (history.effect.semantics !== "idempotent" || history.applied === 0) return exempt;
    return history.applied > 1 ? [`${name(history)} was applied ${history.applied} times`] : [];
  });

export const keysAreStable: Invariant = ({ world, effects }) =>
  combine([
    each(
      Map.groupBy(world, ({ key }) => key),
      ([key, requests]) => {
        const meanings = [...new Set(requests.map(({ name: what, hash }) => `${what} ${hash}`))];
        return meanings.length > 1 ? [`key ${key} meant ${meanings.join(", then ")}`] : [];
      },
    ),
    each(
      Map.groupBy(effects, ({ key }) => key),
      ([key, same]) => (same.length > 1 ? [`${same.length} effects have the key ${key}`] : []),
    ),
  ]);

/** Every call has a durable record from before it, with the same attempt and token. */
export const intentBeforeCall: Invariant = (evidence) =>
  across(histories(evidence), (history) =>
    each(history.calls, ({ attempt, token, at }) => {
      const authorises = (r: FeedRecord): boolean =>
        r.kind === "effect.dispatched" && r.data.attempt === attempt && r.token === token;
      return history.records.some((record) => authorises(record) && record.at <= at)
        ? []
        : [`${name(history)}: attempt ${attempt} was called under ${token} without its record`];
    }),
  );

export const noBlindRetry: Invariant = (evidence) =>
  across(histories(evidence), (history) => {
    if (history.effect.semantics !== "non_idempotent") return notApplicable;
    const resends = history.records.filter(isResend);
    return each(history.records, (record) => {
      if (settledTo(record) !== "PENDING") return exempt;
      const { reason } = record.data as { reason: string };
      if (isResend(record)) {
        if (resends.indexOf(record) >= maxResends)
          return [`${name(history)} was sent again more than ${maxResends} times`];
        return isProven(history, record) ? [] : [`${name(history)} was sent again although it may have happened`];
      }
      return reason === "not_sent" || reason === "operator" ? [] : [`${name(history)} went back to PENDING: ${reason}`];
    });
  });

export const unknownIsNeverLost: Invariant = (evidence) => {
  if (!settles(evidence)) return notApplicable;
  return each(histories(evidence), (history) => {
    const { effect } = history;
    const hasEnded = evidence.runs.some((run) => run.journal === effect.run && run.endedAt !== null);
    // An obligation waits behind a newer one that needs an operator.
    const blocked = evidence.effects.some(
      (one) => one.run === effect.run && one.role === "compensation" && one.status === "STUCK" && one.pos > effect.pos,
    );
    if (effect.status === "PENDING" && (!hasEnded || blocked)) return exempt;
    const open = ["UNKNOWN", "DISPATCHED", "COMMITTED", "PENDING"].includes(effect.status);
    return open ? [`${name(history)} is still ${effect.status} (${effect.reason})`] : [];
  });
};

/**
 * An operator or a restore ended the lease before it expired. Its holder learns that at its next renewal, not before.
 */
function endedEarly({ feed, plan }: Evidence, sent: FeedRecord, token: bigint, at: number): boolean {
  const next = feed.find((r) => r.in === "journal" && r.journal === sent.journal && r.token > token);
  const manual = next?.kind === "term.started" && next.data.reason === "manual" ? [next] : [];
  const restored = feed.filter((r) => r.kind === "store.restored" && r.data.epoch > 0);
  return [...manual, ...restored].some((end) => sent.at <= end.at && at < end.at + plan.ttlMs);
}

/** A replaced owner calls an effect only if its process was paused just before the call. */
export const fencedOwnersStayQuiet: Invariant = (evidence) =>
  across(histories(evidence), (history) =>
    each(history.calls, (call) => {
      const { token, at, attempt } = call;
      const sent = history.records.find((r) => r.kind === "effect.dispatched" && r.data.attempt === attempt);
      const newer = history.records.filter((r) => r.journal === sent?.journal && r.token > token);
      if (newer.length === 0 || wasStopped(call)) return exempt; // the owner was not replaced, or no lease could have helped
      if (newer.every((r) => r.at >= Math.floor(at))) return [];
      return endedEarly(evidence, sent!, token, at)
        ? exempt
        : [`${name(history)} was called under ${token}, which had been replaced`];
    }),
  );

/** A surplus is compensated, whatever became of its run, or is STUCK for an operator. */
export const surplusCompensated: Invariant = (evidence) => {
  const { effects, world } = evidence;
  const owed = effects.filter(({ surplus }) => surplus);
  const seen = new Set(world.filter(({ key }) => key.endsWith("#2")).map(({ key }) => key.slice(0, -2)));
  return combine([
    each(settles(evidence) ? owed : [], ({ key, status }) =>
      status === "COMPENSATED" || status === "STUCK" ? [] : [`the surplus ${key} is ${status}`],
    ),
    each(effects, ({ key, reason, run, pos }) => {
      if (!seen.has(key) || reason !== "duplicate") return exempt;
      return owed.some((one) => one.run === run && one.pos === pos)
        ? []
        : [`${key} was applied twice, and no obligation exists for the surplus`];
    }),
  ]);
};

/** Attempts of one effect are spaced by its back-off, whatever goes wrong. */
const windowMs = 5_000;
const maxInWindow = 8;

/** Applies to effects with more than one attempt. */
export const retriesBackOff: Invariant = (evidence) =>
  each(histories(evidence), (history) => {
    if (history.calls.length < 2) return exempt;
    const times = history.calls.map(({ at }) => at).sort((a, b) => a - b);
    const tooMany = times.some((at, k) => (times[k + maxInWindow] ?? Number.POSITIVE_INFINITY) - at < windowMs);
    return tooMany ? [`${name(history)} was called more than ${maxInWindow} times in ${windowMs} ms`] : [];
  });

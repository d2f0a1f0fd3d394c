import type { EffectRow } from "../../src/model/rows.ts";
import { NotSent } from "../../src/sdk/outcomes.ts";
import type { FeedRecord } from "../../src/store/contract/store.ts";
import type { BodyCall } from "../../testkit/kit/runner.ts";
import type { Evidence } from "../evidence.ts";
import { recordsOf } from "./journal.ts";
import { across, comesToRest, each, exempt, type Invariant, nothing, together } from "./judge.ts";

interface Story {
  readonly effect: EffectRow;
  /** Its records in the main and in its item journal, as the feed has them. */
  readonly records: readonly FeedRecord[];
  readonly calls: readonly BodyCall[];
  /** How often the world carried it out. */
  readonly applied: number;
}

const told = new WeakMap<Evidence, readonly Story[]>();

/** Everything that is known of each effect: gathered once for all who ask. */
function stories(evidence: Evidence): readonly Story[] {
  const known = told.get(evidence) ?? gatherStories(evidence);
  told.set(evidence, known);
  return known;
}

function gatherStories(evidence: Evidence): Story[] {
  const { effects, calls, world } = evidence;
  return effects.map((effect) => {
    const { run, pos, sub, key, item } = effect;
    const own = [...recordsOf(evidence, run), ...(item === null ? [] : recordsOf(evidence, item))];
    const records = own.filter((record) => {
      if (!record.kind.startsWith("effect.") && !record.kind.startsWith("obligation.")) return false;
      const data = record.data as { run?: number; pos?: number; sub?: number };
      if (data.pos !== pos || (data.sub ?? 0) !== sub) return false;
      return record.journal === item || (data.run ?? run) === run;
    });
    const mine = calls.filter((call) => call.key === key && call.role !== "observe");
    return { effect, records, calls: mine, applied: world.filter((one) => one.key === key && one.applied).length };
  });
}

const name = ({ effect }: Story): string => `${effect.name} (${effect.key})`;
const verdicts = new Set(["CONFIRMED", "FAILED", "COMPENSATED"]);
const settledTo = (record: FeedRecord): string | undefined =>
  record.kind === "effect.settled" || record.kind === "obligation.settled" ? record.data.to : undefined;

export const oneVerdict: Invariant = (evidence) =>
  each(stories(evidence), (story) => {
    const told = story.records.flatMap((record) => settledTo(record) ?? []);
    const first = told.findIndex((to) => verdicts.has(to));
    if (first < 0) return exempt;
    return first === told.length - 1 ? [] : [`${name(story)} was settled again: ${told.join(", ")}`];
  });

/** Stopped between the last look at its lease and the call: that window no lease can close. */
const wasStopped = ({ asked, at }: BodyCall): boolean => asked < at;

/** A sender that was stopped may act after the deadline and the settle delay: then nobody could have known. */
const lateMs = 4_000 + 12_000;

export const verdictMatchesWorld: Invariant = (evidence) =>
  each(stories(evidence), (story) => {
    const { effect, applied, records, calls } = story;
    const { status } = effect;
    if (effect.semantics === "read") return exempt;
    if (status === "CONFIRMED" || status === "COMPENSATED") {
      if (effect.name === null) return exempt; // nobody knew how to undo it: a person did, and left no trace in the ledger
      return applied > 0 ? [] : [`${name(story)} is ${status}, but never was`];
    }
    if (status !== "FAILED") return exempt;
    if (applied === 0) return [];
    const dispatched = records.findLast(({ kind }) => kind === "effect.dispatched")?.at ?? 0;
    const late = evidence.world.some((one) => one.key === effect.key && one.applied && one.at > dispatched + lateMs);
    return late && calls.some(wasStopped) ? exempt : [`${name(story)} is FAILED (${effect.reason}), but it happened`];
  });

export const nonIdempotentOnce: Invariant = (evidence) =>
  each(stories(evidence), (story) => {
    const { effect, applied, calls } = story;
    if (effect.semantics !== "non_idempotent" || calls.length + applied === 0) return exempt;
    // An inverse is called again after a look; whoever was stopped just before the call may then come on top of it.
    if (effect.role === "compensation" && calls.some(wasStopped)) return exempt;
    const faults = applied > 1 ? [`${name(story)} was done ${applied} times`] : [];
    const doubtful = calls.filter(
      ({ came }) => !(came !== undefined && "error" in came && came.error instanceof NotSent),
    );
    const again = doubtful.slice(0, -1).filter((call) => !lookedAbsent(story, call) && !askedFor(story, call));
    return again.length === 0 ? faults : [...faults, `${name(story)} was called again after a doubt`];
  });

/** A person who has looked had it sent again. */
const askedFor = ({ records }: Story, { at }: BodyCall): boolean =>
  records.some((r) => settledTo(r) === "PENDING" && (r.data as { reason: string }).reason === "operator" && r.at >= at);

/** An inverse may be sent again once a look, after the deadline and the settle delay, said that it did not happen. */
const lookedAbsent = ({ effect, records }: Story, call: BodyCall): boolean =>
  effect.role === "compensation" &&
  records.some(
    (record) => record.at >= call.at && record.kind === "obligation.settled" && record.data.to === "PENDING",
  );

export const idempotentOnce: Invariant = (evidence) =>
  each(stories(evidence), (story) => {
    if (story.effect.semantics !== "idempotent" || story.applied === 0) return exempt;
    return story.applied > 1 ? [`${name(story)} was applied ${story.applied} times`] : [];
  });

export const keysAreStable: Invariant = ({ world, effects }) =>
  together([
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

/** Whoever calls has a durable record that says so: this attempt, under this token, before the call. */
export const intentBeforeCall: Invariant = (evidence) =>
  across(stories(evidence), (story) =>
    each(story.calls, ({ attempt, token, at }) => {
      const mine = (r: FeedRecord): boolean =>
        r.kind === "effect.dispatched" && r.data.attempt === attempt && r.token === token;
      return story.records.some((record) => mine(record) && record.at <= at)
        ? []
        : [`${name(story)}: attempt ${attempt} was called under ${token} without its record`];
    }),
  );

export const noBlindRetry: Invariant = (evidence) =>
  across(stories(evidence), (story) => {
    if (story.effect.semantics !== "non_idempotent") return nothing;
    return each(story.records, (record) => {
      if (settledTo(record) !== "PENDING") return exempt;
      const { reason } = record.data as { reason: string };
      return reason === "not_sent" || reason === "operator" ? [] : [`${name(story)} went back to PENDING: ${reason}`];
    });
  });

export const unknownIsNeverLost: Invariant = (evidence) => {
  if (!comesToRest(evidence)) return nothing;
  return each(stories(evidence), (story) => {
    const { effect } = story;
    const hasEnded = evidence.runs.some((run) => run.journal === effect.run && run.endedAt !== null);
    // What is to be undone waits its turn behind what a person must look at first.
    const stopped = evidence.effects.some(
      (one) => one.run === effect.run && one.role === "compensation" && one.status === "STUCK" && one.pos > effect.pos,
    );
    if (effect.status === "PENDING" && (!hasEnded || stopped)) return exempt;
    const open = ["UNKNOWN", "DISPATCHED", "COMMITTED", "PENDING"].includes(effect.status);
    return open ? [`${name(story)} is still ${effect.status} (${effect.reason})`] : [];
  });
};

/**
 * A lease that was ended before its time, by a person or with a store that was put back: its holder hears of it at its
 * next renewal, not before.
 */
function endedEarly({ feed, plan }: Evidence, sent: FeedRecord, token: bigint, at: number): boolean {
  const next = feed.find((r) => r.in === "journal" && r.journal === sent.journal && r.token > token);
  const byHand = next?.kind === "term.started" && next.data.reason === "manual" ? [next] : [];
  const putBack = feed.filter((r) => r.kind === "store.restored" && r.data.epoch > 0);
  return [...byHand, ...putBack].some((end) => sent.at <= end.at && at < end.at + plan.ttlMs);
}

/** An act whose owner had been replaced is seen only from a process that was stopped just before it. */
export const fencedOwnersStayQuiet: Invariant = (evidence) =>
  across(stories(evidence), (story) =>
    each(story.calls, (call) => {
      const { token, at, attempt } = call;
      const sent = story.records.find((r) => r.kind === "effect.dispatched" && r.data.attempt === attempt);
      const newer = story.records.filter((r) => r.journal === sent?.journal && r.token > token);
      if (newer.length === 0 || wasStopped(call)) return exempt; // nobody has replaced it, or no lease could have helped
      if (newer.every((r) => r.at >= Math.floor(at))) return [];
      return endedEarly(evidence, sent!, token, at)
        ? exempt
        : [`${name(story)} was called under ${token}, which had been replaced`];
    }),
  );

/** What was done once too often is undone, whatever became of its run; or somebody is asked. */
export const surplusCompensated: Invariant = (evidence) => {
  const { effects, world } = evidence;
  const owed = effects.filter(({ surplus }) => surplus);
  const seen = new Set(world.filter(({ key }) => key.endsWith("#2")).map(({ key }) => key.slice(0, -2)));
  return together([
    each(comesToRest(evidence) ? owed : [], ({ key, status }) =>
      status === "COMPENSATED" || status === "STUCK" ? [] : [`the surplus act ${key} is ${status}`],
    ),
    each(effects, ({ key, reason, run, pos }) => {
      if (!seen.has(key) || reason !== "duplicate") return exempt;
      return owed.some((one) => one.run === run && one.pos === pos)
        ? []
        : [`${key} was done twice, and nobody owes it`];
    }),
  ]);
};

/** Nobody hammers: whatever goes wrong, the tries of one act are paced by its back-off. */
const windowMs = 5_000;
const mostInWindow = 8;

/** Of an act that was tried more often than once. */
export const retriesBackOff: Invariant = (evidence) =>
  each(stories(evidence), (story) => {
    if (story.calls.length < 2) return exempt;
    const times = story.calls.map(({ at }) => at).sort((a, b) => a - b);
    const rash = times.some((at, k) => (times[k + mostInWindow] ?? Number.POSITIVE_INFINITY) - at < windowMs);
    return rash ? [`${name(story)} was tried more than ${mostInWindow} times in ${windowMs} ms`] : [];
  });

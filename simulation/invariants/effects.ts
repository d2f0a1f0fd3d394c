import type { EffectRow } from "../../src/model/rows.ts";
import { NotSent } from "../../src/sdk/outcomes.ts";
import type { FeedRecord } from "../../src/store/contract/store.ts";
import type { BodyCall } from "../../testkit/kit/runner.ts";
import type { Evidence } from "../evidence.ts";
import { type Invariant, recordsOf } from "./journal.ts";

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
  stories(evidence).flatMap((story) => {
    const told = story.records.flatMap((record) => settledTo(record) ?? []);
    const first = told.findIndex((to) => verdicts.has(to));
    return first < 0 || first === told.length - 1 ? [] : [`${name(story)} was settled again: ${told.join(", ")}`];
  });

/** Stopped between the last look at its lease and the call: that window no lease can close. */
const stoppedBeforeAnAct = ({ calls }: Evidence): boolean => calls.some(({ asked, at }) => asked < at);

/** Such a sender may act after the deadline and the settle delay: then nobody could have known. */
const lateMs = 4_000 + 12_000;

export const verdictIsTrue: Invariant = (evidence) =>
  stories(evidence).flatMap((story) => {
    const { effect, applied, records } = story;
    if (effect.semantics === "read") return [];
    const { status } = effect;
    const byHand = effect.name === null; // nobody knew how to undo it: a person did, without a trace in the ledger
    if ((status === "CONFIRMED" || status === "COMPENSATED") && applied === 0 && !byHand)
      return [`${name(story)} is ${status}, but never was`];
    if (status !== "FAILED" || applied === 0) return [];
    const dispatched = records.findLast(({ kind }) => kind === "effect.dispatched")?.at ?? 0;
    const late = evidence.world.some((one) => one.key === effect.key && one.applied && one.at > dispatched + lateMs);
    return late && stoppedBeforeAnAct(evidence) ? [] : [`${name(story)} is FAILED (${effect.reason}), but it happened`];
  });

export const nonIdempotentOnce: Invariant = (evidence) =>
  stories(evidence).flatMap((story) => {
    if (story.effect.semantics !== "non_idempotent") return [];
    // An inverse is called again after a look; whoever was stopped just before the call may then come on top of it.
    const excused = story.effect.role === "compensation" && stoppedBeforeAnAct(evidence);
    const faults = story.applied > 1 && !excused ? [`${name(story)} was done ${story.applied} times`] : [];
    const doubtful = story.calls.filter(
      ({ came }) => !(came !== undefined && "error" in came && came.error instanceof NotSent),
    );
    const again = doubtful.slice(0, -1).filter((call) => !lookedAbsent(story, call) && !askedFor(story, call));
    return again.length === 0 || excused ? faults : [...faults, `${name(story)} was called again after a doubt`];
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
  stories(evidence).flatMap((story) =>
    story.effect.semantics === "idempotent" && story.applied > 1
      ? [`${name(story)} was applied ${story.applied} times`]
      : [],
  );

export const keysNameDecisions: Invariant = ({ world, effects }) => {
  const meaning = new Map<string, string>();
  const faults: string[] = [];
  for (const { key, name: what, hash } of world) {
    const now = `${what} ${hash}`;
    if ((meaning.get(key) ?? now) !== now) faults.push(`key ${key} meant ${meaning.get(key)}, then ${now}`);
    meaning.set(key, now);
  }
  const keys = effects.map(({ key }) => key);
  return [
    ...faults,
    ...keys.filter((key, k) => keys.indexOf(key) !== k).map((key) => `two effects have the key ${key}`),
  ];
};

/** Whoever calls has a durable record that says so: this attempt, under this token, before the call. */
export const intentBeforeAct: Invariant = (evidence) =>
  stories(evidence).flatMap((story) =>
    story.calls
      .filter(({ attempt, token, at }) => {
        const mine = (r: FeedRecord): boolean =>
          r.kind === "effect.dispatched" && r.data.attempt === attempt && r.token === token;
        return !story.records.some((record) => mine(record) && record.at <= at);
      })
      .map(({ attempt, token }) => `${name(story)}: attempt ${attempt} was called under ${token} without its record`),
  );

export const noBlindRetry: Invariant = (evidence) =>
  stories(evidence).flatMap((story) => {
    if (story.effect.semantics !== "non_idempotent") return [];
    const again = story.records.filter((record) => settledTo(record) === "PENDING");
    return again
      .map((record) => (record.data as { reason: string }).reason)
      .filter((reason) => reason !== "not_sent" && reason !== "operator")
      .map((reason) => `${name(story)} went back to PENDING: ${reason}`);
  });

export const doubtIsKept: Invariant = (evidence) =>
  stories(evidence).flatMap(({ effect, ...story }) => {
    if (!evidence.plan.heals) return [];
    const open = ["UNKNOWN", "DISPATCHED", "COMMITTED"].includes(effect.status);
    const pending =
      effect.status === "PENDING" && evidence.runs.some((run) => run.journal === effect.run && run.endedAt !== null);
    const stopped = evidence.effects.some(
      (one) => one.run === effect.run && one.role === "compensation" && one.status === "STUCK" && one.pos > effect.pos,
    );
    return open || (pending && !stopped)
      ? [`${name({ effect, ...story })} is still ${effect.status} (${effect.reason})`]
      : [];
  });

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
export const fencedIsQuiet: Invariant = (evidence) => {
  if (stoppedBeforeAnAct(evidence)) return [];
  return stories(evidence).flatMap((story) =>
    story.calls
      .filter(({ token, at, attempt }) => {
        const sent = story.records.find((r) => r.kind === "effect.dispatched" && r.data.attempt === attempt);
        const newer = (r: FeedRecord): boolean =>
          r.journal === sent?.journal && r.token > token && r.at < Math.floor(at);
        return story.records.some(newer) && !endedEarly(evidence, sent!, token, at);
      })
      .map(({ token }) => `${name(story)} was called under ${token}, which had been replaced`),
  );
};

/** What was done once too often is undone, whatever became of its run; or somebody is asked. */
export const surplusUndone: Invariant = ({ effects, world, plan }) => {
  const owed = effects.filter(({ surplus }) => surplus);
  const faults = owed
    .filter(({ status }) => plan.heals && status !== "COMPENSATED" && status !== "STUCK")
    .map(({ key, status }) => `the surplus act ${key} is ${status}`);
  const seen = world.filter(({ key }) => key.endsWith("#2")).map(({ key }) => key.slice(0, -2));
  const known = effects.filter(({ key, reason }) => seen.includes(key) && reason === "duplicate");
  const forgotten = known.filter(({ run, pos }) => !owed.some((one) => one.run === run && one.pos === pos));
  return [...faults, ...forgotten.map(({ key }) => `${key} was done twice, and nobody owes it`)];
};

/** Nobody hammers: whatever goes wrong, the tries of one act are paced by its back-off. */
const windowMs = 5_000;
const mostInWindow = 8;

export const triesArePaced: Invariant = (evidence) =>
  stories(evidence).flatMap((story) => {
    const times = story.calls.map(({ at }) => at).sort((a, b) => a - b);
    const rash = times.some((at, k) => (times[k + mostInWindow] ?? Number.POSITIVE_INFINITY) - at < windowMs);
    return rash ? [`${name(story)} was tried more than ${mostInWindow} times in ${windowMs} ms`] : [];
  });

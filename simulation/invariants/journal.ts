import type { FeedRecord } from "../../src/store/contract/store.ts";
import type { Evidence } from "../evidence.ts";
import { across, each, exempt, type Invariant, notApplicable, settles } from "./judge.ts";

type Journals = Readonly<Record<FeedRecord["in"], ReadonlyMap<number, readonly FeedRecord[]>>>;
const sorted = new WeakMap<readonly FeedRecord[], Journals>();

/** The records of each journal and each inbox, sorted once for all invariants. */
function byJournal(feed: readonly FeedRecord[], inside: FeedRecord["in"]): ReadonlyMap<number, readonly FeedRecord[]> {
  const known = sorted.get(feed);
  if (known !== undefined) return known[inside];
  const journals = { journal: new Map<number, FeedRecord[]>(), inbox: new Map<number, FeedRecord[]>() };
  for (const record of feed) {
    const journal = journals[record.in].get(record.journal);
    if (journal === undefined) journals[record.in].set(record.journal, [record]);
    else journal.push(record);
  }
  sorted.set(feed, journals);
  return journals[inside];
}

export const mainJournals = ({
  feed,
  runs,
}: Evidence): { id: string; journal: number; records: readonly FeedRecord[] }[] => {
  const journals = byJournal(feed, "journal");
  return runs.map(({ id, journal }) => ({ id, journal, records: journals.get(journal) ?? [] }));
};

/** The records of any journal, of a run or an item. */
export const recordsOf = ({ feed }: Evidence, journal: number): readonly FeedRecord[] =>
  byJournal(feed, "journal").get(journal) ?? [];

export const inboxOf = ({ feed }: Evidence, journal: number): readonly FeedRecord[] =>
  byJournal(feed, "inbox").get(journal) ?? [];

export const seqIsDense: Invariant = ({ feed }) =>
  across(["journal", "inbox"] as const, (inside) =>
    each(byJournal(feed, inside), ([journal, records]) => {
      const wrong = records.find(({ seq }, k) => seq !== k + 1);
      return wrong === undefined ? [] : [`${inside} ${journal} has ${wrong.seq} out of order`];
    }),
  );

export const oneStartOneEnd: Invariant = (evidence) =>
  each(mainJournals(evidence), ({ id, records }) => {
    const begins = records.filter(({ kind }) => kind === "run.created").length;
    const ends = records.filter(({ kind }) => kind === "run.ended").length;
    const faults: string[] = [];
    if (begins !== 1 || records[0]?.kind !== "run.created") faults.push(`${id} does not start with its creation`);
    if (ends > 1 || (ends === 1 && records.at(-1)?.kind !== "run.ended")) faults.push(`${id} continues after its end`);
    return faults;
  });

/** Applies to journals with more than one term. */
export const tokensIncrease: Invariant = ({ feed }) =>
  each(byJournal(feed, "journal"), ([journal, records]) => {
    const faults: string[] = [];
    const owners = new Map<bigint, string>();
    let [last, terms] = [0n, 0];
    for (const { token, seq, kind, data } of records) {
      if (token < last) faults.push(`journal ${journal}, ${seq}: token ${token} after ${last}`);
      if (token !== last || kind === "term.started") terms++;
      last = token;
      if (kind !== "term.started") continue;
      const before = owners.get(token);
      if (before !== undefined)
        faults.push(`journal ${journal}: token ${token} was issued to ${before} and ${data.owner}`);
      owners.set(token, data.owner);
    }
    return terms > 1 ? faults : exempt;
  });

export const acknowledgedIsPresent: Invariant = ({ client, runs, feed }) =>
  each(client.acknowledged, ({ what, run, key }) => {
    const journal = runs.find(({ id }) => id === run)?.journal;
    if (journal === undefined) return [`${run} was acknowledged and is gone`];
    const there = (kind: string): boolean =>
      feed.some(
        (r) => r.in === "inbox" && r.journal === journal && r.kind === kind && (key === undefined || keyOf(r) === key),
      );
    if (what === "signal" && !there("signal.sent")) return [`signal ${key} of ${run} was acknowledged and is gone`];
    if (what === "cancel" && !there("cancel.requested"))
      return [`the cancellation of ${run} was acknowledged and is gone`];
    return [];
  });

const keyOf = (record: FeedRecord): string | undefined => (record.data as { key?: string }).key;

/** The end of a run, once a client has received it, never changes. */
export const resultsAreFinal: Invariant = ({ client, runs }) =>
  each(
    Map.groupBy(client.results, ({ run }) => run),
    ([run, results]) => {
      const distinct = [...new Set(results.map(({ status, outcome }) => `${status} ${outcome}`))];
      const faults = distinct.slice(1).map((now, k) => `${run} was ${distinct[k]}, then ${now}`);
      const status = runs.find(({ id }) => id === run)?.status;
      const last = results.at(-1)!;
      if (status !== undefined && status !== last.status)
        faults.push(`${run} was ${last.status} ${last.outcome}, at the end ${status}`);
      return faults;
    },
  );

const resultKinds: ReadonlySet<string> = new Set([
  "step.done",
  "sleep.ended",
  "gate.resolved",
  "child.received",
  "race.won",
  "effect.received",
]);

/** Every operation has one result, otherwise replay could not choose. */
export const oneResult: Invariant = (evidence) =>
  across(mainJournals(evidence), ({ id, records }) => {
    const results = new Map<number, string>();
    return each(records, ({ kind, data, seq }) => {
      if (kind === "run.retried") results.clear();
      if (!resultKinds.has(kind)) return exempt;
      const { pos } = data as { pos: number };
      const before = results.get(pos);
      results.set(pos, kind);
      return before === undefined ? [] : [`${id}, ${seq}: position ${pos} got ${before}, then ${kind}`];
    });
  });

/** Applies to runs that have taken their cancellation. */
export const noIntentAfterCancel: Invariant = (evidence) =>
  each(mainJournals(evidence), ({ id, journal, records }) => {
    const cancelSeq = inboxOf(evidence, journal).find(({ kind }) => kind === "cancel.requested")?.seq;
    if (cancelSeq === undefined) return exempt;
    const taken = records.findIndex((record) => record.kind === "notes.taken" && record.data.through >= cancelSeq);
    if (taken < 0) return exempt;
    return records
      .slice(taken)
      .filter(({ kind }) => kind === "effect.intended")
      .map(({ seq }) => `${id}, ${seq}: an intent after the cancellation`);
  });

/** Every row equals the fold of the records. */
export const projectionMatches: Invariant = ({ projection, runs, effects, timers, gates, budgets }) => ({
  judged: runs.length + effects.length + timers.length + gates.length + budgets.length,
  faults: projection,
});

/** Every open run is held, queued, or waits for something. */
export const noRunForgotten: Invariant = ({ orphans, runs }) => ({
  judged: runs.filter(({ endedAt }) => endedAt === null).length,
  faults: orphans,
});

/** Clients and operators get what they requested, or an expected refusal. */
export const clientCallsAnswered: Invariant = ({ client, actions }) => ({
  judged: client.acknowledged.length + client.keylessSignals.length + actions.length,
  faults: client.faults,
});

/** Terms in a row that ended because their holder made no progress, up to this record of the journal. */
function stallsBefore(records: readonly FeedRecord[], { seq }: FeedRecord): number {
  const until = records.filter((one) => one.seq < seq);
  const last = until.findLastIndex(({ kind }) => kind !== "term.started" && kind !== "term.ended");
  return until.slice(last + 1).filter((one) => one.kind === "term.started" && one.data.reason === "stalled").length;
}

/** The stalls that make a run STUCK. */
const maxStalls = 3;

export const isStuckByStalls = (record: FeedRecord | undefined): boolean =>
  record?.kind === "run.stuck" &&
  (record.data.detail as { readonly code?: string } | undefined)?.code === "TAPE_STALLED";

/** The run has given up on an upstream: the record before, besides those of terms, says so. */
export function isStuckByOutage(records: readonly FeedRecord[], record: FeedRecord | undefined): boolean {
  if (record?.kind !== "run.stuck") return false;
  if ((record.data.detail as { readonly code?: string } | undefined)?.code !== "TAPE_UNREACHABLE") return false;
  const failed = records.findLast((one) => one.kind === "step.failed" && one.seq < record.seq);
  return failed?.kind === "step.failed" && failed.data.outage?.gaveUp === true;
}

/**
 * A run is STUCK because of effects in doubt, which it names, because three holders in a row made no progress, or
 * because of an outage; never because code and journal disagree.
 */
export const stuckHasReason: Invariant = (evidence) =>
  each(evidence.feed, (record) => {
    const { feed } = evidence;
    if (record.kind !== "run.stuck") return exempt;
    const { effects = [], reason } = record.data;
    if (isStuckByStalls(record)) {
      const stalls = stallsBefore(recordsOf(evidence, record.journal), record);
      return stalls === maxStalls ? [] : [`journal ${record.journal} is STUCK after ${stalls} stalls`];
    }
    if (isStuckByOutage(recordsOf(evidence, record.journal), record)) return [];
    const inDoubt = effects.every(({ run, pos, sub }) =>
      feed.some(
        ({ kind, data }) =>
          (kind === "effect.settled" || kind === "obligation.settled") &&
          data.to === "STUCK" &&
          data.run === run &&
          data.pos === pos &&
          (data.sub ?? 0) === sub,
      ),
    );
    return effects.length > 0 && inDoubt ? [] : [`journal ${record.journal} is STUCK: ${reason}`];
  });

/** Resolving its effects unsticks a run, so a run that is STUCK at the end names an open effect, or has stalled. */
export const stuckNamesItsEffects: Invariant = (evidence) => {
  if (!settles(evidence)) return notApplicable;
  return each(evidence.runs, ({ id, journal, status }) => {
    if (status !== "STUCK") return exempt;
    const records = recordsOf(evidence, journal);
    const last = records.findLast(({ kind }) => kind === "run.stuck");
    if (isStuckByStalls(last) || isStuckByOutage(records, last)) return exempt;
    const on = last?.kind === "run.stuck" ? (last.data.effects ?? []) : [];
    const open = on.some(({ run, pos, sub }) =>
      evidence.effects.some((e) => e.run === run && e.pos === pos && e.sub === sub && e.status === "STUCK"),
    );
    return open ? [] : [`${id} is STUCK, and all its effects are resolved`];
  });
};

import type { FeedRecord } from "../../src/store/contract/store.ts";
import type { Evidence } from "../evidence.ts";

/** A rule that must hold at the end of every simulation; answers where it does not, in words. */
export type Invariant = (evidence: Evidence) => string[];

type Journals = Readonly<Record<FeedRecord["in"], ReadonlyMap<number, readonly FeedRecord[]>>>;
const sorted = new WeakMap<readonly FeedRecord[], Journals>();

/** The records of each journal, and of each inbox: sorted once for all who ask. */
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

/** The records of any journal: of a run, of an item. */
export const recordsOf = ({ feed }: Evidence, journal: number): readonly FeedRecord[] =>
  byJournal(feed, "journal").get(journal) ?? [];

export const inboxOf = ({ feed }: Evidence, journal: number): readonly FeedRecord[] =>
  byJournal(feed, "inbox").get(journal) ?? [];

export const dense: Invariant = ({ feed }) => {
  const faults: string[] = [];
  for (const inside of ["journal", "inbox"] as const) {
    for (const [journal, records] of byJournal(feed, inside)) {
      const wrong = records.find(({ seq }, k) => seq !== k + 1);
      if (wrong !== undefined) faults.push(`${inside} ${journal} has ${wrong.seq} out of order`);
    }
  }
  return faults;
};

export const oneBeginningOneEnd: Invariant = (evidence) =>
  mainJournals(evidence).flatMap(({ id, records }) => {
    const begins = records.filter(({ kind }) => kind === "run.created").length;
    const ends = records.filter(({ kind }) => kind === "run.ended").length;
    const faults: string[] = [];
    if (begins !== 1 || records[0]?.kind !== "run.created") faults.push(`${id} does not begin with its creation`);
    if (ends > 1 || (ends === 1 && records.at(-1)?.kind !== "run.ended")) faults.push(`${id} goes on after its end`);
    return faults;
  });

export const tokensRise: Invariant = ({ feed }) => {
  const faults: string[] = [];
  const owners = new Map<string, string>();
  for (const [journal, records] of byJournal(feed, "journal")) {
    let last = 0n;
    for (const { token, seq, kind, data } of records) {
      if (token < last) faults.push(`journal ${journal}, ${seq}: token ${token} after ${last}`);
      last = token;
      if (kind !== "term.started") continue;
      const before = owners.get(`${journal} ${token}`);
      if (before !== undefined)
        faults.push(`journal ${journal}: token ${token} was given to ${before} and ${data.owner}`);
      owners.set(`${journal} ${token}`, data.owner);
    }
  }
  return faults;
};

export const acknowledgedIsPresent: Invariant = ({ client, runs, feed }) =>
  client.acknowledged.flatMap(({ what, run, key }) => {
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

export const resultsAreFinal: Invariant = ({ client, runs }) => {
  const seen = new Map<string, string>();
  const faults = new Set<string>();
  for (const { run, status, outcome } of client.results) {
    const now = `${status} ${outcome}`;
    if ((seen.get(run) ?? now) !== now) faults.add(`${run} was ${seen.get(run)}, then ${now}`);
    seen.set(run, now);
  }
  for (const { id, status } of runs) {
    if (seen.has(id) && !seen.get(id)!.startsWith(`${status} `))
      faults.add(`${id} was ${seen.get(id)}, at the end ${status}`);
  }
  return [...faults];
};

/** Every operation has one result: replay would not know which to hand out. */
export const oneResult: Invariant = (evidence) =>
  mainJournals(evidence).flatMap(({ id, records }) => {
    const told = new Map<number, string>();
    return records.flatMap(({ kind, data, seq }) => {
      if (kind === "run.retried") told.clear();
      if (
        !["step.done", "sleep.ended", "gate.resolved", "child.received", "race.won", "effect.received"].includes(kind)
      )
        return [];
      const { pos } = data as { pos: number };
      const before = told.get(pos);
      told.set(pos, kind);
      return before === undefined ? [] : [`${id}, ${seq}: position ${pos} got ${before}, then ${kind}`];
    });
  });

export const noIntentAfterCancel: Invariant = (evidence) =>
  evidence.runs.flatMap((run) => {
    const asked = inboxOf(evidence, run.journal).find(({ kind }) => kind === "cancel.requested")?.seq;
    if (asked === undefined) return [];
    let taken = false;
    return evidence.feed.flatMap((record) => {
      if (record.in !== "journal" || record.journal !== run.journal) return [];
      if (record.kind === "notes.taken" && record.data.through >= asked) taken = true;
      return taken && record.kind === "effect.intended"
        ? [`${run.id}, ${record.seq}: an intent after the cancellation`]
        : [];
    });
  });

export const projectionHolds: Invariant = ({ projection }) => [...projection];
export const nobodyForgotten: Invariant = ({ orphans }) => [...orphans];
export const clientsWereTreatedWell: Invariant = ({ client }) => [...client.faults];

/** A run sticks for a doubt that nobody can settle, and names it; never because code and journal disagree. */
export const stuckForAReason: Invariant = ({ feed }) =>
  feed.flatMap((record) => {
    if (record.kind !== "run.stuck") return [];
    const { on = [], why } = record.data;
    const inDoubt = on.every(({ run, pos, sub }) =>
      feed.some(
        ({ kind, data }) =>
          (kind === "effect.settled" || kind === "obligation.settled") &&
          data.to === "STUCK" &&
          data.run === run &&
          data.pos === pos &&
          (data.sub ?? 0) === sub,
      ),
    );
    return on.length > 0 && inDoubt ? [] : [`journal ${record.journal} is stuck: ${why}`];
  });

/** A person's word sets a run free by itself: whoever is stuck at the end is stuck on something. */
export const stuckOnSomething: Invariant = (evidence) =>
  mainJournals(evidence).flatMap(({ id, records }) => {
    if (evidence.runs.find((run) => run.id === id)?.status !== "STUCK" || !evidence.plan.heals) return [];
    const last = records.findLast(({ kind }) => kind === "run.stuck");
    const on = last?.kind === "run.stuck" ? (last.data.on ?? []) : [];
    const open = on.some(({ run, pos, sub }) =>
      evidence.effects.some((e) => e.run === run && e.pos === pos && e.sub === sub && e.status === "STUCK"),
    );
    return open ? [] : [`${id} is stuck on what has been resolved`];
  });

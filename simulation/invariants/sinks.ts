import { each, exempt, type Invariant, notApplicable } from "./judge.ts";

const restoredKind = "store.restored";

/**
 * Every record from the first delivered one on is delivered or a dead letter. A sink that begins at the start of the feed
 * gets all of them.
 */
export const eventsAreComplete: Invariant = ({ sink, lost }) => {
  if (sink?.records === undefined) return notApplicable;
  const { arrivals, letters, records, plan } = sink;
  // A backup may be older than the first checkpoint: then the sink begins again, with another "now".
  if (plan.from === "now" && lost !== undefined) return notApplicable;
  const received = arrivals.flatMap(({ id, what }) => (what === "received" ? [id] : []));
  const known = new Set([...received, ...letters.map(({ event }) => event)]);
  const first = plan.from === "start" ? 0 : records.findIndex((id) => known.has(id));
  return each(first < 0 ? [] : records.slice(first), (id) => (known.has(id) ? [] : [`the event ${id} never arrived`]));
};

/**
 * First deliveries of a journal arrive in the order of its records. After a restore only the new epoch of the store is
 * judged: until it learns that its lease is lost, an old holder sends records of the restored store, too.
 */
export const eventsAreInOrder: Invariant = ({ sink }) => {
  const latest = Math.max(0, ...(sink?.arrivals ?? []).map(({ storeEpoch }) => storeEpoch));
  const last = new Map<string, number>();
  const seen = new Set<string>();
  return each(sink?.arrivals ?? [], ({ id, journal, inbox, seq, storeEpoch, kind, what }) => {
    if (what !== "received" || seen.has(id) || kind === restoredKind || storeEpoch < latest) return exempt;
    seen.add(id);
    const key = `${journal} ${inbox}`;
    const before = last.get(key) ?? 0;
    last.set(key, Math.max(before, seq));
    return seq > before ? [] : [`the event ${id} arrived after record ${before} of its journal`];
  });
};

/**
 * A term repeats only what was sent beyond the checkpoint, which is a window at most. The checkpoint may be older after a
 * restore, and after a write of it that was delayed beyond the next one.
 */
export const repeatsAreBounded: Invariant = ({ sink, lost, faultHits }) => {
  const isDelayed = faultHits.some(({ fault: { kind, at } }) => kind === "hang" && at === "append");
  const terms = new Map<bigint, Set<string>>();
  const repeats = new Map<bigint, Set<string>>();
  for (const { id, token, what } of sink?.arrivals ?? []) {
    if (what !== "received") continue;
    const isRepeat = [...terms].some(([earlier, ids]) => earlier < token && ids.has(id));
    terms.set(token, (terms.get(token) ?? new Set()).add(id));
    if (isRepeat) repeats.set(token, (repeats.get(token) ?? new Set()).add(id));
  }
  return each(terms.keys(), (token) => {
    if (lost !== undefined || isDelayed) return exempt;
    const size = repeats.get(token)?.size ?? 0;
    return size <= sink!.plan.window ? [] : [`${size} events were repeated under token ${token}`];
  });
};

/** A dead letter is an event that the receiver refused three times and never received. */
export const deadLettersAreTrue: Invariant = ({ sink }) =>
  each(sink?.letters ?? [], ({ event }) => {
    const arrivals = sink!.arrivals.filter(({ id }) => id === event);
    const refusals = arrivals.filter(({ what }) => what === "refused").length;
    const faults: string[] = [];
    if (refusals < 3) faults.push(`the dead letter ${event} was refused ${refusals} times`);
    if (arrivals.some(({ what }) => what === "received")) faults.push(`the dead letter ${event} was received`);
    return faults;
  });

/** Checkpoints are moved under tokens that never decrease: a stale holder moves none. */
export const checkpointsAreFenced: Invariant = ({ checkpoints }) => {
  const tokens = new Map<number, bigint>();
  return each(checkpoints, ({ journal, token, at }) => {
    const highest = tokens.get(journal) ?? 0n;
    const stale = token < highest;
    if (!stale) tokens.set(journal, token);
    return stale ? [`at ${at} a holder with token ${token} moved the checkpoint after token ${highest}`] : [];
  });
};

/** One id names one record, also across a restore: receivers drop an id that they know. */
export const eventIdsAreUnique: Invariant = ({ sink }) => {
  const known = new Map<string, string>();
  return each(sink?.arrivals ?? [], ({ id, recordedAt, kind }) => {
    if (kind === restoredKind) return exempt;
    const content = `${kind} of ${recordedAt}`;
    const before = known.get(id) ?? content;
    known.set(id, before);
    return before === content ? [] : [`the event ${id} is a ${before}, and also a ${content}`];
  });
};

/**
 * Once everything has settled, the store rests: a fan-out makes it write no record, otherwise the feed would feed itself;
 * and without loops nothing calls it.
 */
export const storeRests: Invariant = ({ sink, callsAtRest }) => {
  const written = sink?.records === undefined ? [] : [[sink.writtenAtRest, "records were written"] as const];
  const called = callsAtRest === undefined ? [] : [[callsAtRest, "calls were made without loops"] as const];
  return each([...written, ...called], ([count, what]) =>
    count === 0 ? [] : [`${count} ${what} in ten idle minutes`],
  );
};

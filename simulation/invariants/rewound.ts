import type { FeedRecord } from "../../src/store/contract/store.ts";
import type { Evidence } from "../evidence.ts";
import { each, exempt, type Invariant, notApplicable } from "./judge.ts";

/** The epoch is in the high bits of every token. */
const epochBits = 40n;
/** The store's own journal, written under no lease. */
const storeJournal = 1;

/** The index of the restore in the feed, and the lowest token of its epoch. */
function restore({ feed }: Evidence): { readonly at: number; readonly floor: bigint } | undefined {
  const at = feed.findIndex((record) => record.kind === "store.restored" && record.data.epoch > 0);
  const record = feed[at];
  return record?.kind === "store.restored" ? { at, floor: BigInt(record.data.epoch) << epochBits } : undefined;
}

/** After a restore, no token is issued that may have been issued before in records that were lost. */
export const restoredTokensAreNew: Invariant = (evidence) => {
  const found = restore(evidence);
  if (evidence.lost === undefined) return notApplicable;
  if (found === undefined) return { judged: 1, faults: ["the store went back, and its journal has no restore"] };
  const lostTokens = new Set(evidence.lost.feed.map(({ journal, token }) => `${journal} ${token}`));
  return each(evidence.feed.slice(found.at), ({ kind, journal, token }) => {
    if (kind !== "term.started") return exempt;
    if (token < found.floor) return [`journal ${journal}: token ${token} is from before the restore`];
    return lostTokens.has(`${journal} ${token}`) ? [`journal ${journal}: token ${token} was issued twice`] : [];
  });
};

/** A holder from before a restore writes nothing more under its lease, whether the store remembers its term or not. */
export const restoreFences: Invariant = (evidence) => {
  const found = restore(evidence);
  if (found === undefined) return notApplicable;
  return each(evidence.feed.slice(found.at + 1), ({ token, journal, seq, in: inside }) => {
    if (inside !== "journal" || journal === storeJournal || token === 0n) return exempt;
    return token < found.floor ? [`journal ${journal}, ${seq} was written under ${token} after the restore`] : [];
  });
};

type Keys = ReadonlyMap<string, string>;

/** The key of each effect, according to these records. */
function keysIn(records: readonly FeedRecord[]): Keys {
  const keys = new Map<string, string>();
  for (const { kind, data, journal } of records) {
    if (kind === "effect.intended") keys.set(`${journal} ${data.pos} 0`, data.key);
  }
  return keys;
}

/**
 * The evidence without calls whose dispatch record the store has lost. Such an effect may be sent again: no journal can
 * prevent that. Observations of effects that the store has lost, and acknowledgements that overlap the loss, are left
 * out too. Nothing else is excused.
 */
export function remembered(evidence: Evidence): Evidence {
  const { lost, feed, calls, world, effects, client } = evidence;
  if (lost === undefined) return evidence;
  const before = feed.filter(({ at }) => at <= lost.from);
  const forgotten = dispatches(lost.feed, keysIn([...before, ...lost.feed]), evidence);
  const kept = dispatches(feed, keysIn(feed), evidence);
  const isLost = (one: { key: string; attempt: number; token: bigint }): boolean =>
    !kept.has(nameOf(one)) && (forgotten.has(nameOf(one)) || forgotten.has(nameOf({ ...one, key: "" })));
  const isConfirmed = (key: string): boolean =>
    effects.some((effect) => effect.key === key && (effect.status === "CONFIRMED" || effect.status === "COMPENSATED"));
  // An observation is not dispatched, so it is lost together with its effect.
  const known = new Set(effects.map(({ key }) => key));
  const isLostObservation = ({ role, key, at }: Evidence["calls"][number]): boolean =>
    role === "observe" && !known.has(key) && at >= lost.from;
  return {
    ...evidence,
    calls: calls.filter((call) => !isLost(call) && !isLostObservation(call)),
    // A lost call stays if its effect is confirmed and no kept call explains that: then the journal knows of it.
    world: world.filter(
      (one) =>
        !isLost(one) ||
        (isConfirmed(one.key) && !world.some((o) => o.applied && o.key === one.key && o !== one && !isLost(o))),
    ),
    client: {
      ...client,
      acknowledged: client.acknowledged.filter(({ requestedAt, at }) => requestedAt > lost.to || at < lost.from),
    },
  };
}

const nameOf = ({ key, attempt, token }: { key: string; attempt: number; token: bigint }): string =>
  `${key} ${attempt} ${token}`;

/**
 * Dispatches by key, attempt and token. A compensation whose row is lost is listed with an empty key: its item's journal
 * does not contain the key.
 */
function dispatches(records: readonly FeedRecord[], keys: Keys, { effects }: Evidence): Set<string> {
  const found = new Set<string>();
  for (const { kind, data, journal, token } of records) {
    if (kind !== "effect.dispatched") continue;
    const { run = journal, pos, sub = 0, attempt } = data;
    const row = effects.find((one) => one.run === run && one.pos === pos && one.sub === sub);
    found.add(nameOf({ key: keys.get(`${run} ${pos} ${sub}`) ?? row?.key ?? "", attempt, token }));
  }
  return found;
}

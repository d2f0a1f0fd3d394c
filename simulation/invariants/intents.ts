import type { EffectRow } from "../../src/model/rows.ts";
import { mainJournals } from "./journal.ts";
import { across, each, exempt, type Invariant } from "./judge.ts";

/** Every call uses the key of an intent that a journal holds. */
export const keysHaveIntents: Invariant = ({ calls, effects }) => {
  const known = new Set(effects.map(({ key }) => key));
  return each(calls, ({ effect, key }) =>
    known.has(key) ? [] : [`${effect} was called under the key ${key}, which no journal holds`],
  );
};

/** Statuses in which the effect happened or may happen, so that its business key is not free. */
const standing = new Set(["PENDING", "DISPATCHED", "UNKNOWN", "STUCK", "CONFIRMED"]);

/** At most one effect at a time holds a business key. */
export const businessKeysHold: Invariant = ({ effects }) => {
  const owners = new Map<string, EffectRow>();
  return each(effects, (effect) => {
    const { role, status, businessKey, run, pos } = effect;
    const compensated = effects.some(
      (other) =>
        other.role === "compensation" &&
        other.run === run &&
        other.pos === pos &&
        !other.surplus &&
        isCompensated(other),
    );
    if (role !== "effect" || businessKey === null || !standing.has(status) || compensated) return exempt;
    const name = `${effect.connector ?? effect.name} ${businessKey}`;
    const owner = owners.get(name);
    owners.set(name, effect);
    return owner === undefined ? [] : [`${name} belongs to ${owner.key} and to ${effect.key}`];
  });
};

const isCompensated = ({ status }: EffectRow): boolean => status === "COMPENSATED";

/** Once an inline effect is in doubt, its item has the authority: the run's journal writes no outcome of its own. */
export const onlyAuthorityWrites: Invariant = (evidence) =>
  across(mainJournals(evidence), ({ journal, records }) => {
    const writes = records.filter((one) => one.kind === "effect.settled" || one.kind === "effect.dispatched");
    const effects = Map.groupBy(writes, ({ data: { pos, sub = 0 } }) => `${pos}.${sub}`);
    return each(effects, ([effect, own]) => {
      const laneResults = own.findIndex(({ kind, data }) => kind === "effect.settled" && data.to === "UNKNOWN");
      if (laneResults < 0) return exempt;
      return own
        .slice(laneResults + 1)
        .map(({ seq, kind }) => `journal ${journal}, ${seq}: ${kind} of ${effect}, which belongs to its item`);
    });
  });

export const runIdsAreUnique: Invariant = ({ runs }) =>
  each(
    Map.groupBy(runs, ({ id }) => id),
    ([id, same]) => (same.length > 1 ? [`there are several runs ${id}`] : []),
  );

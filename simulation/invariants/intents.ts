import type { EffectRow } from "../../src/model/rows.ts";
import type { Invariant } from "./journal.ts";

/** Whoever acts acts under the key of a decision that the journal knows. */
export const keysAreIntended: Invariant = ({ calls, effects }) => {
  const known = new Set(effects.map(({ key }) => key));
  return calls
    .filter(({ key }) => !known.has(key))
    .map(({ effect, key }) => `${effect} was called under the key ${key}, which no journal holds`);
};

/** What it did, or may have done, stands: the claim to its business key is not free yet. */
const claims = new Set(["PENDING", "DISPATCHED", "UNKNOWN", "STUCK", "CONFIRMED"]);

/** At most one act at a time means the same thing. */
export const businessKeysHold: Invariant = ({ effects }) => {
  const owners = new Map<string, EffectRow>();
  return effects.flatMap((effect) => {
    const { role, status, businessKey, run, pos } = effect;
    const undone = effects.some(
      (other) =>
        other.role === "compensation" && other.run === run && other.pos === pos && !other.surplus && isUndone(other),
    );
    if (role !== "effect" || businessKey === null || !claims.has(status) || undone) return [];
    const name = `${effect.connector ?? effect.name} ${businessKey}`;
    const owner = owners.get(name);
    owners.set(name, effect);
    return owner === undefined ? [] : [`${name} belongs to ${owner.key} and to ${effect.key}`];
  });
};

const isUndone = ({ status }: EffectRow): boolean => status === "COMPENSATED";

/** From the moment an inline act is in doubt its item decides: the run writes nothing about it but what it was told. */
export const authorityIsHandedOver: Invariant = ({ feed, runs }) => {
  const mains = new Set(runs.map(({ journal }) => journal));
  const handed = new Set<string>();
  return feed.flatMap((record) => {
    if (record.in !== "journal" || !mains.has(record.journal)) return [];
    if (record.kind !== "effect.settled" && record.kind !== "effect.dispatched") return [];
    const { pos, sub = 0 } = record.data;
    const name = `${record.journal} ${pos}.${sub}`;
    const late = handed.has(name);
    if (record.kind === "effect.settled" && record.data.to === "UNKNOWN") handed.add(name);
    return late ? [`journal ${record.journal}, ${record.seq}: ${record.kind} of ${pos}, which is its item's`] : [];
  });
};

export const oneRunForAnId: Invariant = ({ runs }) => {
  const ids = runs.map(({ id }) => id);
  return [...new Set(ids.filter((id, k) => ids.indexOf(id) !== k))].map((id) => `there are several runs ${id}`);
};

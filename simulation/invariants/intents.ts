import type { EffectRow } from "../../src/model/rows.ts";
import { mainJournals } from "./journal.ts";
import { across, each, exempt, type Invariant } from "./judge.ts";

/** Whoever acts acts under the key of a decision that the journal knows. */
export const keysHaveIntents: Invariant = ({ calls, effects }) => {
  const known = new Set(effects.map(({ key }) => key));
  return each(calls, ({ effect, key }) =>
    known.has(key) ? [] : [`${effect} was called under the key ${key}, which no journal holds`],
  );
};

/** What it did, or may have done, stands: the claim to its business key is not free yet. */
const claims = new Set(["PENDING", "DISPATCHED", "UNKNOWN", "STUCK", "CONFIRMED"]);

/** At most one act at a time means the same thing. */
export const businessKeysHold: Invariant = ({ effects }) => {
  const owners = new Map<string, EffectRow>();
  return each(effects, (effect) => {
    const { role, status, businessKey, run, pos } = effect;
    const undone = effects.some(
      (other) =>
        other.role === "compensation" && other.run === run && other.pos === pos && !other.surplus && isUndone(other),
    );
    if (role !== "effect" || businessKey === null || !claims.has(status) || undone) return exempt;
    const name = `${effect.connector ?? effect.name} ${businessKey}`;
    const owner = owners.get(name);
    owners.set(name, effect);
    return owner === undefined ? [] : [`${name} belongs to ${owner.key} and to ${effect.key}`];
  });
};

const isUndone = ({ status }: EffectRow): boolean => status === "COMPENSATED";

/** From the moment an inline act is in doubt its item decides: the run writes nothing about it but what it was told. */
export const onlyAuthorityWrites: Invariant = (evidence) =>
  across(mainJournals(evidence), ({ journal, records }) => {
    const writes = records.filter((one) => one.kind === "effect.settled" || one.kind === "effect.dispatched");
    const effects = Map.groupBy(writes, ({ data: { pos, sub = 0 } }) => `${pos}.${sub}`);
    return each(effects, ([effect, own]) => {
      const handed = own.findIndex(({ kind, data }) => kind === "effect.settled" && data.to === "UNKNOWN");
      if (handed < 0) return exempt;
      return own
        .slice(handed + 1)
        .map(({ seq, kind }) => `journal ${journal}, ${seq}: ${kind} of ${effect}, which is its item's`);
    });
  });

export const runIdsAreUnique: Invariant = ({ runs }) =>
  each(
    Map.groupBy(runs, ({ id }) => id),
    ([id, same]) => (same.length > 1 ? [`there are several runs ${id}`] : []),
  );

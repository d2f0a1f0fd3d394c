import { shardName } from "../../src/host/singleton/shard-of.ts";
import { shardedName } from "../shard-work.ts";
import { recordsOf } from "./journal.ts";
import { each, exempt, type Invariant, notApplicable } from "./judge.ts";

/** A poll, the courtesy of replicas that have their share, and travel. */
const pollMs = 5_000 + 3_000 + 2_000;
const fairMs = 20_000;

/** A body that asserts its lease never works after another process has taken its shard; and one token is one body. */
export const oneOwnerForAShard: Invariant = (evidence) => {
  const { shards, named } = evidence;
  if (shards === undefined) return notApplicable;
  const journals = new Map([...named].map(([journal, name]) => [name, journal]));
  const terms = Array.from({ length: shards.plan.of }, (_, index) => {
    const journal = journals.get(shardName(shardedName, { index, of: shards.plan.of }));
    const records = journal === undefined ? [] : recordsOf(evidence, journal);
    return records.filter(({ kind }) => kind === "term.started");
  });
  const started = new Map<string, string>();
  return each(shards.events, ({ what, shard, token, at, process }) => {
    if (what === "end") return exempt;
    if (what === "start") {
      const key = `${shard} ${token}`;
      const before = started.get(key);
      started.set(key, process);
      return before === undefined ? [] : [`${before} and ${process} had shard ${shard} under token ${token}`];
    }
    const next = terms[shard]!.find((record) => record.token > token);
    return next === undefined || next.at >= Math.floor(at)
      ? []
      : [`${process} worked on shard ${shard} under ${token}, after token ${next.token} was given`];
  });
};

/**
 * Once the leases of dead holders are over, no shard is without a holder for longer than one poll, unless all replicas
 * are full.
 */
export const shardsAreHeld: Invariant = ({ shards }) => {
  const since = new Map<number, number>();
  return each(shards?.checks ?? [], ({ at, held, unheld, calmMs }) => {
    const room = held.reduce((sum, { max = shards!.plan.of }) => sum + max, 0);
    if (calmMs < 0 || room < shards!.plan.of) {
      since.clear();
      return exempt;
    }
    for (const shard of since.keys()) if (!unheld.includes(shard)) since.delete(shard);
    for (const shard of unheld) since.set(shard, since.get(shard) ?? at);
    const late = unheld.filter((shard) => at - since.get(shard)! > pollMs);
    return late.map((shard) => `at ${at} no replica has worked on shard ${shard} for ${at - since.get(shard)!} ms`);
  });
};

/** Each shard is handed over alone, in a few round trips. */
const trips = 6;

/** 20 s after the last change, no replica has two shards more than another. */
export const shardsAreFair: Invariant = ({ shards, plan }) =>
  each(shards?.checks ?? [], ({ at, held, knownMs }) => {
    if (knownMs < fairMs + trips * shards!.plan.of * plan.travelMs || held.length < 2) return exempt;
    // Where one may have less than its share, the others cannot know theirs.
    if (held.some(({ max = shards!.plan.of }) => max < Math.ceil(shards!.plan.of / held.length))) return exempt;
    const largest = Math.max(...held.map((one) => one.shards));
    const poor = held.filter((one) => one.shards < largest - 1);
    const all = held.map((one) => `${one.process} ${one.shards}`).join(", ");
    return poor.map(({ process }) => `at ${at} ${process} has too few shards: ${all}`);
  });

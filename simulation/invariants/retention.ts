import { hasPayload, type RetentionEvidence } from "../retainers.ts";
import { each, exempt, type Invariant } from "./judge.ts";

/** The records of each run in a file, as its lines have them. */
function recordsIn(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    if (!line.startsWith('{"type":"record"')) continue;
    const { run, inbox, seq } = JSON.parse(line) as { run: string; inbox?: boolean; seq: number };
    const body = line.slice(line.indexOf('"data":') + '"data":'.length, -1);
    found.set(run, [...(found.get(run) ?? []), `${inbox === true ? "inbox " : ""}${seq} ${body}`]);
  }
  return found;
}

const text = (records: readonly string[]): string => records.toSorted().join("\n");

/** Trees whose erasure has come to its end, or at least to its first part: their outcomes are markers. */
const erasedTrees = (retention: RetentionEvidence | undefined): ReadonlySet<string> =>
  new Set(retention?.erasures.flatMap(({ tree, parts }) => (parts > 0 ? [tree] : [])));

/**
 * Every run that has ended is in the store or, byte for byte, in the file that its tombstone names; of one whose erasure
 * had started, the erased text.
 */
export const nothingLostUnarchived: Invariant = ({ retention }) => {
  const parsed = new Map<string, Map<string, string[]>>();
  const linesOf = ({ files }: RetentionEvidence, name: string): Map<string, string[]> => {
    const known = parsed.get(name) ?? recordsIn(files.get(name) ?? "");
    parsed.set(name, known);
    return known;
  };
  const trees = erasedTrees(retention);
  return each(retention?.ended ?? [], ({ id, tree, records: stored, erasedRecords }) => {
    if (retention!.left.has(id)) return [];
    const records = trees.has(tree) ? erasedRecords : stored;
    const name = retention!.tombstones.get(id);
    if (name === undefined) return [`${id} is gone, and nothing names its file`];
    const archived = linesOf(retention!, name).get(id) ?? [];
    return text(archived) === text(records) ? [] : [`${name} does not have the records of ${id}`];
  });
};

/** A run that was deleted has a tombstone: its id is never started again. */
export const tombstonesStay: Invariant = ({ retention }) =>
  each(retention?.ended ?? [], ({ id }) => {
    if (retention!.left.has(id)) return exempt;
    return retention!.restarted.includes(id) ? [`${id} was deleted, and could be started again`] : [];
  });

/** The runs of a tree are all in the store, or none is. */
export const treesGoWhole: Invariant = ({ retention }) => {
  const trees = Map.groupBy(retention?.ended ?? [], ({ tree }) => tree);
  return each(trees, ([tree, runs]) => {
    const left = runs.filter(({ id }) => retention!.left.has(id)).length;
    return left === 0 || left === runs.length ? [] : [`${left} of ${runs.length} runs of ${tree} are left`];
  });
};

/** No run is deleted before the policy of its root's workflow says so. */
export const policiesHold: Invariant = ({ retention }) => {
  const ended = new Map(retention?.ended.map((run) => [run.id, run]));
  const pruned = (retention?.prunes ?? []).flatMap(({ ids, at }) => ids.map((id) => ({ id, at })));
  return each(pruned, ({ id, at }) => {
    const run = ended.get(id);
    if (run === undefined) return [`${id} was deleted before it had ended`];
    const isDue = run.keptMs !== null && at >= run.endedAt + run.keptMs;
    return isDue ? [] : [`${id} of ${run.tree} was deleted ${at - run.endedAt} ms after its end`];
  });
};

/** Sweepers delete under tokens that never decrease: a stale one deletes nothing. */
export const sweepersAreFenced: Invariant = ({ retention }) => {
  let highest = 0n;
  return each(retention?.prunes ?? [], ({ token, at }) => {
    const isStale = token < highest;
    if (!isStale) highest = token;
    return isStale ? [`at ${at} a sweeper with token ${token} deleted after token ${highest}`] : [];
  });
};

/** An erased run has no payload: neither in the store, nor in the file of the archive that its tombstone names. */
export const erasedHoldsNothing: Invariant = ({ retention }) => {
  const done = new Set(retention?.erasures.flatMap(({ tree, done }) => (done ? [tree] : [])));
  const runs = (retention?.ended ?? []).filter(({ tree }) => done.has(tree));
  return each(runs, ({ id }) => {
    const name = retention!.tombstones.get(id);
    const archived = name === undefined ? [] : (recordsIn(retention!.files.get(name) ?? "").get(id) ?? []);
    const found = [retention!.texts.get(id) ?? "", ...archived].some(hasPayload);
    return found ? [`${id} was erased, and ${name ?? "the store"} has a payload of it`] : [];
  });
};

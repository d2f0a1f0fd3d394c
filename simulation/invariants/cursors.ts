import { each, exempt, type Invariant } from "./judge.ts";

/**
 * Reading a list page by page returns each item once, every item that existed throughout, and no other tenant's item.
 */
export const walksAreWhole: Invariant = ({ walks }) =>
  each(walks, ({ list, of, atMs, seen, before, after, foreign }) => {
    if (seen.length + before.length === 0) return exempt;
    const once = new Set(seen);
    const left = new Set(after);
    const missed = before.filter((id) => left.has(id) && !once.has(id));
    const faults: string[] = [];
    if (once.size < seen.length) faults.push(`${seen.length - once.size} items were returned twice`);
    if (missed.length > 0) faults.push(`${missed.join(", ")} were never returned`);
    if (foreign.length > 0) faults.push(`${foreign.join(", ")} belong to another tenant`);
    return faults.map((fault) => `the walk at ${atMs} through ${list} of ${of}: ${fault}`);
  });

import { each, exempt, type Invariant } from "./judge.ts";

/** Who reads a list page by page sees each item once, all that was there from the first page to the last, and its own only. */
export const walksAreWhole: Invariant = ({ walks }) =>
  each(walks, ({ list, of, atMs, seen, before, after, foreign }) => {
    if (seen.length + before.length === 0) return exempt;
    const once = new Set(seen);
    const left = new Set(after);
    const missed = before.filter((id) => left.has(id) && !once.has(id));
    const faults: string[] = [];
    if (once.size < seen.length) faults.push(`${seen.length - once.size} items came again`);
    if (missed.length > 0) faults.push(`${missed.join(", ")} never came`);
    if (foreign.length > 0) faults.push(`${foreign.join(", ")} are another tenant's`);
    return faults.map((fault) => `the walk at ${atMs} through ${list} of ${of}: ${fault}`);
  });

import type { FeedRecord } from "../src/store/contract/store.ts";

/** Takes records one after the other. False: this one does not fit here, and nothing of it was taken. */
export interface Taker {
  attempt(record: FeedRecord): boolean;
}

/**
 * How often the search begins again. Each time the records that did not fit go earlier by twice as many of their own
 * journal: this reaches back a thousand records, and transactions that overlap are a few apart.
 */
const passes = 11;

/**
 * Is there an order of these records in which all of them fit, while each journal and each inbox keeps its own? The
 * taker that took them so, or undefined.
 *
 * PostgreSQL's feed is ordered by the numbers of transactions. A transaction has its number from its first lock on, so
 * one with a smaller number that had to wait commits after one with a larger: a note comes before the end of the term
 * that had not seen it. Records that do not fit yet wait for those of other journals. If some are left over, another
 * one took their place too early, and in the next pass those left over are taken as soon as they fit.
 */
export function takeInSomeOrder<T extends Taker>(records: readonly FeedRecord[], begin: () => T): T | undefined {
  const lines = linesOf(records);
  const urgent = new Set<number>();
  const reach = new Map<number, number>();
  for (let pass = 0; pass < passes; pass++) {
    const taker = begin();
    const left = play(records, lines, urgent, taker);
    if (left.length === 0) return taker;
    for (const [line, at] of left) {
      const first = line[at]!;
      const back = reach.get(first) ?? 1;
      reach.set(first, 2 * back);
      for (const index of line.slice(Math.max(0, at + 1 - back), at + 1)) urgent.add(index);
    }
  }
  return undefined;
}

/** One journal or one inbox: the places of its records in the feed. */
type Line = readonly number[];

function linesOf(records: readonly FeedRecord[]): Line[] {
  const lines = new Map<string, number[]>();
  for (const [index, { in: inside, journal }] of records.entries()) {
    const key = `${inside} ${journal}`;
    const line = lines.get(key);
    if (line === undefined) lines.set(key, [index]);
    else line.push(index);
  }
  return [...lines.values()];
}

/** One pass. Answers the lines that did not come to their end, and how far they came. */
function play(records: readonly FeedRecord[], lines: readonly Line[], urgent: ReadonlySet<number>, taker: Taker) {
  const came = new Map<Line, number>(lines.map((line) => [line, 0]));
  const waiting = new Set<Line>(lines.filter((line) => urgent.has(line[0]!)));
  const lineOf = new Map(lines.flatMap((line) => line.map((index) => [index, line] as const)));
  /** Takes of a line what is due by now. True: it took something. */
  const follow = (line: Line, now: number): boolean => {
    const before = came.get(line)!;
    for (let at = before; ; at++) {
      came.set(line, at);
      const index = line[at];
      const isDue = index !== undefined && (index <= now || urgent.has(index));
      if (isDue && taker.attempt(records[index]!)) continue;
      if (isDue) waiting.add(line);
      else waiting.delete(line);
      return at > before;
    }
  };
  for (const now of records.keys()) {
    let moved = follow(lineOf.get(now)!, now);
    while (moved) moved = [...waiting].some((line) => follow(line, now));
  }
  return [...came].filter(([line, at]) => at < line.length);
}

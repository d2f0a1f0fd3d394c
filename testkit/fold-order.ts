import type { FeedRecord } from "../src/store/contract/store.ts";

/** Accepts records one after another. `tryAdd` returns false, and changes nothing, if the record does not fit yet. */
export interface RecordSink {
  tryAdd(record: FeedRecord): boolean;
}

/**
 * Number of passes. In each pass, records that did not fit move earlier, by twice as many records of their own journal
 * as before. This reaches back a thousand records; overlapping transactions are only a few apart.
 */
const passes = 11;

/**
 * Searches an order in which all records fit, while each journal and each inbox keeps its own order. Returns the sink
 * that accepted them, or undefined.
 *
 * PostgreSQL's feed is ordered by transaction number. A transaction gets its number with its first lock, so one with a
 * smaller number that had to wait commits after one with a larger. A note may then precede the end of the term that had
 * not seen it. Records that do not fit yet wait for those of other journals. If some are left over, another record took
 * their place too early, and in the next pass those left over are added as soon as they fit.
 */
export function foldInSomeOrder<T extends RecordSink>(
  records: readonly FeedRecord[],
  createSink: () => T,
): T | undefined {
  const sequences = sequencesOf(records);
  const urgent = new Set<number>();
  const reach = new Map<number, number>();
  for (let pass = 0; pass < passes; pass++) {
    const sink = createSink();
    const left = foldPass(records, sequences, urgent, sink);
    if (left.length === 0) return sink;
    for (const [sequence, at] of left) {
      const first = sequence[at]!;
      const back = reach.get(first) ?? 1;
      reach.set(first, 2 * back);
      for (const index of sequence.slice(Math.max(0, at + 1 - back), at + 1)) urgent.add(index);
    }
  }
  return undefined;
}

/** One journal or one inbox: the indexes of its records in the feed. */
type Sequence = readonly number[];

function sequencesOf(records: readonly FeedRecord[]): Sequence[] {
  const sequences = new Map<string, number[]>();
  for (const [index, { in: inside, journal }] of records.entries()) {
    const key = `${inside} ${journal}`;
    const sequence = sequences.get(key);
    if (sequence === undefined) sequences.set(key, [index]);
    else sequence.push(index);
  }
  return [...sequences.values()];
}

/** One pass. Returns the sequences that did not finish, and how far they got. */
function foldPass(
  records: readonly FeedRecord[],
  sequences: readonly Sequence[],
  urgent: ReadonlySet<number>,
  sink: RecordSink,
) {
  const progress = new Map<Sequence, number>(sequences.map((sequence) => [sequence, 0]));
  const waiting = new Set<Sequence>(sequences.filter((sequence) => urgent.has(sequence[0]!)));
  const sequenceOf = new Map(sequences.flatMap((sequence) => sequence.map((index) => [index, sequence] as const)));
  /** Adds the records of a sequence that are due by now. True: at least one was added. */
  const advance = (sequence: Sequence, now: number): boolean => {
    const before = progress.get(sequence)!;
    for (let at = before; ; at++) {
      progress.set(sequence, at);
      const index = sequence[at];
      const isDue = index !== undefined && (index <= now || urgent.has(index));
      if (isDue && sink.tryAdd(records[index]!)) continue;
      if (isDue) waiting.add(sequence);
      else waiting.delete(sequence);
      return at > before;
    }
  };
  for (const now of records.keys()) {
    let moved = advance(sequenceOf.get(now)!, now);
    while (moved) moved = [...waiting].some((sequence) => advance(sequence, now));
  }
  return [...progress].filter(([sequence, at]) => at < sequence.length);
}

import { inboxOf } from "./journal.ts";
import { each, exempt, type Invariant, mayBeForgotten } from "./judge.ts";

/** A signal without a key that was sent once arrives once, however often its request was repeated on the way. */
export const requestsCountOnce: Invariant = (evidence) => {
  const { keylessSignals } = evidence.client;
  return each(keylessSignals, ({ run, text, acknowledged, requestedAt, answeredAt }) => {
    const journal = evidence.runs.find(({ id }) => id === run)?.journal;
    const notes = journal === undefined ? [] : inboxOf(evidence, journal);
    const found = notes.filter((note) => note.kind === "signal.sent" && isSignal(note.data.value, text)).length;
    if (found > 1) return [`"${text}" was sent to ${run} once and arrived ${found} times`];
    if (found === 1) return [];
    if (!acknowledged || mayBeForgotten(evidence.lost, requestedAt, answeredAt)) return exempt;
    return [`"${text}" was acknowledged and never reached ${run}`];
  });
};

const isSignal = (value: unknown, text: string): boolean => (value as { key?: string } | undefined)?.key === text;

import { type Invariant, inboxOf } from "./journal.ts";

/** A signal without a key, sent once by its sender, arrives once: however often its request was repeated on the way. */
export const requestsCountOnce: Invariant = (evidence) => {
  const { said } = evidence.client;
  return said.flatMap(({ run, text, acknowledged }) => {
    const journal = evidence.runs.find(({ id }) => id === run)?.journal;
    const notes = journal === undefined ? [] : inboxOf(evidence, journal);
    const found = notes.filter((note) => note.kind === "signal.sent" && saysSo(note.data.value, text)).length;
    if (found > 1) return [`"${text}" was sent to ${run} once and arrived ${found} times`];
    const gone = acknowledged && found === 0 && evidence.lost === undefined;
    return gone ? [`"${text}" was acknowledged and never reached ${run}`] : [];
  });
};

const saysSo = (value: unknown, text: string): boolean => (value as { key?: string } | undefined)?.key === text;

import { each, type Invariant, nothing } from "./judge.ts";

/** How often a process looks without having been told, and the longest pause that anybody makes between two tries. */
const scanMs = 5_000;
const backoffMs = 60_000;
/** People answer, and look at doubts, now and then. */
const peopleMs = 35_000;

/**
 * When nothing goes wrong any more, something happens until all has come to rest: between two records never passes more
 * than a dead holder's term, a look and the longest back-off.
 */
export const livenessHolds: Invariant = ({ feed, plan, healedAt, settledAt }) => {
  // Of a world that was cut off, and of one that never came to rest (which is a fault by itself), nothing can be said.
  if (healedAt === undefined || settledAt === undefined) return nothing;
  const boundMs = plan.ttlMs + scanMs + backoffMs + peopleMs;
  let last = healedAt;
  const written = feed.map((record) => record.at).filter((at) => at > healedAt && at < settledAt);
  return each([...written, settledAt], (at) => {
    const before = last;
    last = Math.max(last, at);
    return at - before > boundMs
      ? [`nothing happened for ${at - before} ms, ${before - healedAt} ms after the heal`]
      : [];
  });
};

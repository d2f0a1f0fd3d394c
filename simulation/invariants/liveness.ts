import type { Invariant } from "./journal.ts";

/** How often a process looks without having been told, and the longest pause that anybody makes between two tries. */
const scanMs = 5_000;
const backoffMs = 60_000;
/** People answer, and look at doubts, now and then. */
const peopleMs = 35_000;

/**
 * When nothing goes wrong any more, something happens until all has come to rest: between two records never passes more
 * than a dead holder's term, a look and the longest back-off.
 */
export const somethingHappens: Invariant = ({ feed, plan, healedAt, settledAt }) => {
  if (healedAt === undefined || settledAt === undefined) return [];
  const boundMs = plan.ttlMs + scanMs + backoffMs + peopleMs;
  let last = healedAt;
  const faults: string[] = [];
  for (const at of [...feed.map((record) => record.at).filter((one) => one > healedAt && one < settledAt), settledAt]) {
    if (at - last > boundMs) faults.push(`nothing happened for ${at - last} ms, ${last - healedAt} ms after the heal`);
    last = Math.max(last, at);
  }
  return faults;
};

import { each, type Invariant, notApplicable } from "./judge.ts";

/** Longest interval between two polls without a hint, and longest back-off between two attempts. */
const scanMs = 5_000;
const backoffMs = 60_000;
/** Without loops a lost wake-up costs four bounds, and a call that a dead process took with it is repeated after 60 s. */
const alarmMs = 80_000;
/** The simulated resolver and approver act at intervals. */
const peopleMs = 35_000;

/**
 * After the last fault, records keep being written until everything has settled. Two records are never further apart
 * than a dead holder's TTL, one poll and the longest back-off.
 */
export const livenessHolds: Invariant = ({ feed, plan, healedAt, settledAt }) => {
  // Not applicable to a world that was cut off, or that never settled, which is a fault of its own.
  if (healedAt === undefined || settledAt === undefined) return notApplicable;
  const boundMs = plan.ttlMs + scanMs + backoffMs + peopleMs + (plan.serverless === undefined ? 0 : alarmMs);
  let last = healedAt;
  const written = feed.map((record) => record.at).filter((at) => at > healedAt && at < settledAt);
  return each([...written, settledAt], (at) => {
    const before = last;
    last = Math.max(last, at);
    return at - before > boundMs ? [`no record for ${at - before} ms, ${before - healedAt} ms after the heal`] : [];
  });
};

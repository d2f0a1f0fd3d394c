import { combine, each, exempt, type Invariant } from "./judge.ts";

/** A root or schedule is admitted only below the limit, not counting children created within the last second. */
export const quotasHold: Invariant = ({ quotas }) =>
  each(quotas, ({ what, at, limits, fresh, open, justBorn, schedules }) => {
    const [have, limit] = what === "schedule" ? [schedules, limits.schedules] : [open - justBorn, limits.runs];
    if (fresh === 0 || limit === null) return exempt;
    return have <= limit ? [] : [`"${what}" at ${at}: ${fresh} admitted, and there are ${have} of ${limit}`];
  });

/** A refusal for a quota means that it is used up, counting what has just ended; there is no other refusal. */
export const quotasLeaveRoom: Invariant = ({ quotas }) =>
  each(quotas, ({ what, at, limits, refused, other, open, justEnded, schedules }) => {
    if (refused.length + other.length === 0) return exempt;
    const faults = other.map((error) => `"${what}" at ${at} failed: ${error}`);
    const have: Readonly<Record<string, number>> = { runs: open + justEnded, schedules, bytes: Number.MAX_VALUE };
    for (const quota of new Set(refused)) {
      const limit = limits[quota as keyof typeof limits];
      if (limit === null || have[quota]! < limit)
        faults.push(`"${what}" at ${at} was refused for ${quota}, and there are ${have[quota]} of ${limit}`);
    }
    return faults;
  });

/** The store's usage equals the actual count: runs and schedules at every moment, bytes once everything is idle. */
export const quotasAreCounted: Invariant = ({ quotas, measured }) => {
  const checks = each(quotas, ({ what, at, limits, used, open, schedules }) => {
    const counted = limits.runs !== null || limits.bytes !== null;
    const found: string[] = [];
    if (counted && used.runs !== open) found.push(`${used.runs} runs are counted, and ${open} are open`);
    if (used.schedules !== schedules) found.push(`${used.schedules} schedules are counted, and there are ${schedules}`);
    if ((used.bytes ?? 0) < 0) found.push(`${used.bytes} bytes are counted`);
    return found.map((fault) => `after "${what}" at ${at}: ${fault}`);
  });
  if (measured === undefined) return checks;
  const { counted, found } = measured;
  const bytes = counted === found ? [] : [`${counted} bytes are counted, and the records have ${found}`];
  return combine([checks, { judged: 1, faults: bytes }]);
};

import { each, exempt, type Invariant, together } from "./judge.ts";

/** No root and no schedule is new where there are as many already as there may be, but for children of the last second. */
export const quotasHold: Invariant = ({ quotas }) =>
  each(quotas, ({ what, at, limits, fresh, open, justBorn, schedules }) => {
    const [have, limit] = what === "schedule" ? [schedules, limits.schedules] : [open - justBorn, limits.runs];
    if (fresh === 0 || limit === null) return exempt;
    return have <= limit ? [] : [`"${what}" at ${at}: ${fresh} let in, and there are ${have} of ${limit}`];
  });

/** Who is refused for a quota has used it up, counting what has just ended; and nobody is refused for anything else. */
export const quotasLeaveRoom: Invariant = ({ quotas }) =>
  each(quotas, ({ what, at, limits, refused, other, open, justEnded, schedules }) => {
    if (refused.length + other.length === 0) return exempt;
    const faults = other.map((told) => `"${what}" at ${at} was told: ${told}`);
    const have: Readonly<Record<string, number>> = { runs: open + justEnded, schedules, bytes: Number.MAX_VALUE };
    for (const quota of new Set(refused)) {
      const limit = limits[quota as keyof typeof limits];
      if (limit === null || have[quota]! < limit)
        faults.push(`"${what}" at ${at} was refused for ${quota}, and there are ${have[quota]} of ${limit}`);
    }
    return faults;
  });

/** What the store says of a quota is what there is: runs and schedules at each moment, bytes when all is at rest. */
export const quotasAreCounted: Invariant = ({ quotas, measured }) => {
  const stories = each(quotas, ({ what, at, limits, used, open, schedules }) => {
    const counted = limits.runs !== null || limits.bytes !== null;
    const found: string[] = [];
    if (counted && used.runs !== open) found.push(`${used.runs} runs are counted, and ${open} are open`);
    if (used.schedules !== schedules) found.push(`${used.schedules} schedules are counted, and there are ${schedules}`);
    if ((used.bytes ?? 0) < 0) found.push(`${used.bytes} bytes are counted`);
    return found.map((fault) => `after "${what}" at ${at}: ${fault}`);
  });
  if (measured === undefined) return stories;
  const { counted, found } = measured;
  const bytes = counted === found ? [] : [`${counted} bytes are counted, and the records have ${found}`];
  return together([stories, { judged: 1, faults: bytes }]);
};

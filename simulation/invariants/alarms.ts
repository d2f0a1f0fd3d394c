import { startWallMs } from "../../testkit/kit/virtual-time.ts";
import { each, exempt, type Invariant, notApplicable } from "./judge.ts";

/** Alarms are rounded, clocks differ, and a response travels: a process that stood still sets its alarm after its write. */
const graceMs = 5_000;

/**
 * Whatever is on the agenda, an alarm is set that fires when it is due, or four bounds after now at the latest: then
 * also four bounds after the commit that put it there.
 */
export const alarmCoversAgenda: Invariant = ({ agendaChecks }) => {
  let uncoveredSince: number | undefined;
  return each(agendaChecks, ({ at, dueInMs, alarmInMs, boundMs }) => {
    if (alarmInMs <= Math.max(dueInMs, boundMs) + graceMs) {
      uncoveredSince = undefined;
      return [];
    }
    uncoveredSince ??= at;
    if (at - uncoveredSince <= graceMs) return [];
    return [`at ${at} work is due in ${dueInMs} ms, and the next alarm fires in ${alarmInMs} ms`];
  });
};

/** A sweep that a dead process took with it is repeated this much later, and may take as long again. */
const repeatMs = 60_000 + 20_000;

/** Once faults have ended, no work stays due for longer than a lost wake-up, a dead holder and one sweep take. */
export const everyRunIsFound: Invariant = ({ agendaChecks, plan, healedAt }) => {
  if (plan.serverless === undefined || healedAt === undefined) return notApplicable;
  return each(
    agendaChecks.filter(({ at }) => at > healedAt),
    ({ at, lateMs, boundMs }) => {
      const waitedMs = Math.min(lateMs, at - healedAt);
      const limitMs = boundMs + plan.ttlMs + repeatMs;
      return waitedMs > limitMs ? [`at ${at} work has been due for ${waitedMs} ms, longer than ${limitMs} ms`] : [];
    },
  );
};

/**
 * A replica that has answered all its requests holds no run and no item: its host may freeze it now. One that was paused
 * or lost a response may hold what it does not know of, until that expires; so may one whose run has stalled, and one
 * that could set no alarm while a body called its upstream.
 */
export const answeredHoldsNothing: Invariant = ({ answers, faultHits, runs, plan }) => {
  const stalling = new Set(runs.flatMap(({ workflow, journal }) => (workflow === "limited" ? [journal] : [])));
  return each(answers, ({ at, process, to, held, unarmedAt }) => {
    const wasHit = faultHits.some(
      (hit) => process.startsWith(`${hit.fault.replica}.`) && startWallMs + hit.at <= at && hit.fault.kind !== "busy",
    );
    if (wasHit || (unarmedAt !== undefined && at - unarmedAt <= plan.ttlMs)) return exempt;
    const kept = held.filter((journal) => !stalling.has(journal));
    return kept.length === 0 ? [] : [`at ${at} ${process} answered its ${to} and held the journals ${kept.join(", ")}`];
  });
};

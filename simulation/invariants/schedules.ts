import { runIdOf } from "../../src/model/schedule.ts";
import type { Evidence } from "../evidence.ts";
import type { ScheduleHistory } from "../schedule-clients.ts";
import { across, each, exempt, type Invariant, mayBeForgotten, notApplicable } from "./judge.ts";

const secondMs = 1_000;
const slotOf = (id: string): number => Date.parse(id.slice(id.indexOf("@") + 1));

/** The runs that a schedule started, ordered by slot. */
const started = ({ runs }: Evidence, { plan }: ScheduleHistory) =>
  runs
    .filter(({ id, labels }) => labels.schedule === plan.id && id.startsWith(`${plan.id}@`))
    .map((run) => ({ ...run, slot: slotOf(run.id) }))
    .sort((a, b) => a.slot - b.slot);

type ScheduleAction = ScheduleHistory["did"][number];

const actionOf = ({ did }: ScheduleHistory, what: ScheduleAction["what"]): ScheduleAction | undefined =>
  did.find((one) => one.what === what);

/** A store that went back may have lost this action, so that the schedule continues without it. */
const isForgotten = ({ lost }: Evidence, { from, to }: ScheduleAction): boolean => mayBeForgotten(lost, from, to);

/** A schedule starts runs only at its slots: never early, never before its creation or after its deletion. */
export const firingsMatchCron: Invariant = (evidence) =>
  across(evidence.schedules, (history) => {
    const { everySeconds, id } = history.plan;
    const [made, gone] = [actionOf(history, "create"), actionOf(history, "delete")];
    return each(started(evidence, history), ({ slot, createdAt, id: run }) => {
      const faults: string[] = [];
      if (run !== runIdOf(id, slot) || ((slot / secondMs) % 60) % everySeconds !== 0)
        faults.push(`${run} is not at a slot`);
      if (createdAt < slot) faults.push(`${run} was started ${slot - createdAt} ms early`);
      if (slot < (made?.from ?? 0)) faults.push(`${run} is older than its schedule`);
      if (gone !== undefined && createdAt > gone.to && !history.loose && !isForgotten(evidence, gone))
        faults.push(`${run} was started after its schedule was deleted`);
      return faults;
    });
  });

/** Slots that fall due during a pause are not made up for. */
export const pausedSchedulesStay: Invariant = (evidence) =>
  each(evidence.schedules, (history) => {
    const [paused, resumed] = [actionOf(history, "pause"), actionOf(history, "resume")];
    if (paused === undefined || history.loose || isForgotten(evidence, paused)) return exempt;
    const until = resumed?.from ?? Number.POSITIVE_INFINITY;
    return started(evidence, history)
      .filter(({ slot }) => slot > paused.to && slot < until)
      .map(({ id }) => `${id} fell due while its schedule was paused`);
  });

/** Slots that were due this long before a pause, and not fired yet, stay unfired. */
const firingMs = 1_000;

/** With `all` and `allow`, no slot is left out between the first and the last, except during a pause. */
export const firingsAreNotLost: Invariant = (evidence) =>
  across(evidence.schedules, (history) => {
    const { everySeconds, overlap, catchUp, id } = history.plan;
    if (overlap !== "allow" || catchUp !== "all" || history.loose) return notApplicable;
    const slots = started(evidence, history).map(({ slot }) => slot);
    const [paused, resumed] = [actionOf(history, "pause"), actionOf(history, "resume")];
    const [first = 0, last = 0] = [slots[0], slots.at(-1)];
    const seconds = Array.from({ length: Math.ceil((last - first) / secondMs) }, (_, k) => first + k * secondMs);
    return each(seconds, (slot) => {
      const due = ((slot / secondMs) % 60) % everySeconds === 0;
      const inPause = paused !== undefined && slot >= paused.from - firingMs && slot <= (resumed?.to ?? slot);
      if (!due || inPause) return exempt;
      return slots.includes(slot) ? [] : [`${runIdOf(id, slot)} was never started`];
    });
  });

/** With `skip` and `wait`, no two runs of a schedule are open at once. */
export const overlapPolicyHolds: Invariant = (evidence) =>
  across(evidence.schedules, (history) => {
    if (history.plan.overlap === "allow" || history.loose) return notApplicable;
    const runs = started(evidence, history);
    return each(runs.slice(1), ({ id, createdAt }, k) => {
      const { id: before, endedAt } = runs[k]!;
      return endedAt === null || endedAt > createdAt ? [`${id} was started while ${before} was open`] : [];
    });
  });

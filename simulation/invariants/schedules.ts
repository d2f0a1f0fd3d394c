import { runIdOf } from "../../src/model/schedule.ts";
import type { Evidence } from "../evidence.ts";
import type { ScheduleStory } from "../schedule-clients.ts";
import { across, each, exempt, type Invariant, mayBeForgotten, nothing } from "./judge.ts";

const secondMs = 1_000;
const slotOf = (id: string): number => Date.parse(id.slice(id.indexOf("@") + 1));

/** The runs that a schedule has started, by the time for which they were started. */
const started = ({ runs }: Evidence, { plan }: ScheduleStory) =>
  runs
    .filter(({ id, labels }) => labels.schedule === plan.id && id.startsWith(`${plan.id}@`))
    .map((run) => ({ ...run, slot: slotOf(run.id) }))
    .sort((a, b) => a.slot - b.slot);

type ScheduleAction = ScheduleStory["did"][number];

const actionOf = ({ did }: ScheduleStory, what: ScheduleAction["what"]): ScheduleAction | undefined =>
  did.find((one) => one.what === what);

/** A store that went back may have forgotten it: then its schedule goes on as if nobody had said anything. */
const isForgotten = ({ lost }: Evidence, { from, to }: ScheduleAction): boolean => mayBeForgotten(lost, from, to);

/** A run for each time at which it is due and for no other: neither early, nor before its making or after its end. */
export const firingsMatchCron: Invariant = (evidence) =>
  across(evidence.schedules, (story) => {
    const { everySeconds, id } = story.plan;
    const [made, gone] = [actionOf(story, "create"), actionOf(story, "delete")];
    return each(started(evidence, story), ({ slot, createdAt, id: run }) => {
      const faults: string[] = [];
      if (run !== runIdOf(id, slot) || ((slot / secondMs) % 60) % everySeconds !== 0) faults.push(`${run} is no slot`);
      if (createdAt < slot) faults.push(`${run} was started ${slot - createdAt} ms early`);
      if (slot < (made?.from ?? 0)) faults.push(`${run} is older than its schedule`);
      if (gone !== undefined && createdAt > gone.to && !story.loose && !isForgotten(evidence, gone))
        faults.push(`${run} was started after its schedule was deleted`);
      return faults;
    });
  });

/** What falls due while it is paused is not made up for. */
export const pausedSchedulesStay: Invariant = (evidence) =>
  each(evidence.schedules, (story) => {
    const [paused, resumed] = [actionOf(story, "pause"), actionOf(story, "resume")];
    if (paused === undefined || story.loose || isForgotten(evidence, paused)) return exempt;
    const until = resumed?.from ?? Number.POSITIVE_INFINITY;
    return started(evidence, story)
      .filter(({ slot }) => slot > paused.to && slot < until)
      .map(({ id }) => `${id} fell due while its schedule was paused`);
  });

/** What has fallen due and is not fired yet when the schedule is paused stays so: from when on that may be. */
const firingMs = 1_000;

/** With `all` and `allow` none is left out between the first and the last, but what fell due in a pause. */
export const firingsAreNotLost: Invariant = (evidence) =>
  across(evidence.schedules, (story) => {
    const { everySeconds, overlap, catchUp, id } = story.plan;
    if (overlap !== "allow" || catchUp !== "all" || story.loose) return nothing;
    const slots = started(evidence, story).map(({ slot }) => slot);
    const [paused, resumed] = [actionOf(story, "pause"), actionOf(story, "resume")];
    const [first = 0, last = 0] = [slots[0], slots.at(-1)];
    const seconds = Array.from({ length: Math.ceil((last - first) / secondMs) }, (_, k) => first + k * secondMs);
    return each(seconds, (slot) => {
      const due = ((slot / secondMs) % 60) % everySeconds === 0;
      const resting = paused !== undefined && slot >= paused.from - firingMs && slot <= (resumed?.to ?? slot);
      if (!due || resting) return exempt;
      return slots.includes(slot) ? [] : [`${runIdOf(id, slot)} was never started`];
    });
  });

/** With `skip` and `wait` no two runs of a schedule live at once. */
export const overlapPolicyHolds: Invariant = (evidence) =>
  across(evidence.schedules, (story) => {
    if (story.plan.overlap === "allow" || story.loose) return nothing;
    const runs = started(evidence, story);
    return each(runs.slice(1), ({ id, createdAt }, k) => {
      const { id: before, endedAt } = runs[k]!;
      return endedAt === null || endedAt > createdAt ? [`${id} was started while ${before} lived`] : [];
    });
  });

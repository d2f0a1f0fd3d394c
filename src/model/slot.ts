import { resumedClass, type SlotState } from "./queue.ts";
import type { RecordData } from "./records.ts";

/** How a run moves through its queue. Pure rules, the same for every store. */

/**
 * What happens to a run of a queue.
 *
 *   released   its term has ended; `wanted`: it continues as soon as it can
 *   noted      a note has arrived in its inbox
 *   cancelled  such a note asks it to stop, or it has waited for too long
 *   due        its start time has come
 *   decided    its outcome is decided: no workflow code runs any more
 *   ended      the run has ended
 */
export type SlotEvent =
  | { readonly of: "released"; readonly wanted: boolean }
  | { readonly of: "noted" | "cancelled" | "due" | "decided" | "ended" };

/** The place of a run in its queue. */
export interface Slot {
  readonly journal: number;
  /** 0: it is in no queue, and only starts later. */
  readonly queue: number;
  readonly key: string;
  readonly class: number;
  readonly state: SlotState;
  /** The queue counts started runs: it keeps its slot while it waits. */
  readonly keeps: boolean;
  readonly expires: boolean;
}

/** Where the run is then; undefined: it has left the queue. */
export function slotAfter(slot: Slot, event: SlotEvent): Pick<Slot, "state" | "class"> | undefined {
  const { state, keeps } = slot;
  const same = { state, class: slot.class };
  const back = { state: "QUEUED", class: resumedClass } as const;
  switch (event.of) {
    case "ended":
      return undefined;
    case "decided":
      return state === "HELD" && !keeps ? undefined : same;
    case "released":
      if (state === "HELD") return event.wanted || keeps ? same : { state: "PARKED", class: slot.class };
      return state === "PARKED" && event.wanted ? back : same;
    case "noted":
      return state === "PARKED" ? back : same;
    case "cancelled":
      if (state === "PARKED") return back;
      return hasNeverRun(slot) ? undefined : same;
    case "due":
      if (state !== "DELAYED") return same;
      return slot.queue === 0 ? undefined : { state: "QUEUED", class: slot.class };
  }
}

/** Such a run needs no slot to stop: its code is never called. */
const hasNeverRun = ({ state, class: of }: Slot): boolean =>
  state === "DELAYED" || (state === "QUEUED" && of !== resumedClass);

/** Positions of a run's own keys among the business keys; operations have positions from 0. */
export const uniquePos = -1;
export const debouncePos = -2;
/** The position of a run's own timers. */
export const startPos = 0;

export const uniqueScope = (workflow: string): string => `unique ${workflow}`;
export const debounceScope = (workflow: string): string => `debounce ${workflow}`;

type CreatedRun = RecordData<"run.created">;

/** The delay of its start; undefined: none. */
export function startDelay(
  created: CreatedRun,
): { readonly delayMs: number; readonly until: number | null } | undefined {
  const { delayMs, startAt, debounce } = created;
  if (startAt !== undefined) return { delayMs: 0, until: startAt };
  const delay = debounce?.waitMs ?? delayMs;
  return delay === undefined ? undefined : { delayMs: delay, until: null };
}

/** The name of its queue; empty: none, but it starts later or has a unique key; null: a run like any other. */
export function leaseQueue(created: CreatedRun): string | null {
  if (created.queue !== undefined) return created.queue.name;
  return startDelay(created) === undefined && created.unique === undefined ? null : "";
}

/** Whether the run must not start at once. */
export const startsLater = (created: CreatedRun): boolean =>
  created.queue !== undefined || startDelay(created) !== undefined;

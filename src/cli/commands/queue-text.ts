import type { QueueReason, RateLimit } from "../../model/queue.ts";
import type { CycleStep } from "../../model/queue-cycle.ts";
import type { PauseView, QueuePosition, QueueView } from "../../store/contract/store.ts";
import { lasting, timeOf } from "../output.ts";

/** Queues in words, for every command that shows them. */

const maxNamed = 5;

export const keyText = (key: string): string => (key === "" ? "(no key)" : key);

/** "3 of 50", or "3" without a limit. */
export const slotsText = (running: number, limit: number | undefined): string =>
  limit === undefined ? String(running) : `${running} of ${limit}`;

/** "600 per 1 m, at most 20 at once". */
export function rateText({ limit, perMs, burst }: RateLimit): string {
  const even = `${limit} per ${lasting(perMs)}`;
  return burst === 1 ? even : `${even}, at most ${burst} at once`;
}

export const pauseText = ({ by, reason }: PauseView | Extract<QueueReason, { why: "paused" }>): string =>
  `paused by ${by}: ${reason}`;

/** What keeps the next run of a queue from starting; empty: nothing that the queue itself knows. */
export function queueState({ paused, running, limits, nextAt, waiting }: QueueView, now: number): string {
  if (paused !== undefined) return pauseText(paused);
  if (waiting === 0) return "";
  if (limits.concurrency !== undefined && running >= limits.concurrency) return "full";
  return nextAt !== undefined && nextAt > now ? `rate: next in ${lasting(nextAt - now)}` : "";
}

/** Where a run is in its queue, then one line for each reason why it does not start. */
export function positionLines(position: QueuePosition, now: number): string[] {
  const { queue, key, state, sinceMs, class: priority, reasons } = position;
  const where = key === "" ? `queue ${queue}` : `queue ${queue}, key ${key}`;
  const rank = priority === 0 ? "has run before" : `priority ${priority}`;
  const lines = reasons.map((reason) => `  ${reasonText(reason, now)}`);
  if (state === "HELD") return [`holds a slot of ${where} for ${lasting(sinceMs)}`, ...lines];
  if (state === "PARKED") return [`gave up its slot of ${where} ${lasting(sinceMs)} ago, while it waits`, ...lines];
  const later = queue === "" ? "starts later" : `joins ${where} later`;
  const head = state === "DELAYED" ? later : `waits in ${where} for ${lasting(sinceMs)} (${rank})`;
  return [head, ...(lines.length === 0 ? ["  nothing keeps it from starting: a process takes it next"] : lines)];
}

export function reasonText(reason: QueueReason, now: number): string {
  switch (reason.why) {
    case "delayed":
      return `delayed: until ${timeOf(reason.at)}, in ${lasting(reason.at - now)}`;
    case "paused":
      return reason.key === undefined ? pauseText(reason) : `key ${keyText(reason.key)} is ${pauseText(reason)}`;
    case "queue_full":
      return `queue full: ${slotsText(reason.running, reason.limit)} slots held by ${namesText(reason)}`;
    case "key_full":
      return `key full: ${slotsText(reason.running, reason.limit)} slots held by ${namesText(reason)}`;
    case "rate":
      return `rate${reason.key === undefined ? "" : " of its key"}: next start at ${timeOf(reason.nextAt)}, in ${lasting(reason.nextAt - now)}`;
    case "behind":
      return `${reason.runs}${reason.more ? " or more" : ""} ${reason.runs === 1 && !reason.more ? "run" : "runs"} of its key before it`;
    case "unserved":
      return `no process serves it: none has reported the workflow ${reason.workflow} with this queue`;
    case "cycle":
      return `cycle: ${cycleText(reason.steps)}`;
  }
}

/** "b.0 waits for a slot of queue docks, which a holds while it waits for a.0; …", back to b.0. */
export function cycleText(steps: readonly CycleStep[]): string {
  const texts = steps.slice(0, maxNamed).map(({ run, queue, key, holder }, k) => {
    const where = key === "" ? `queue ${queue}` : `queue ${queue}, key ${key}`;
    const next = steps[(k + 1) % steps.length]!.run;
    return `${run} waits for a slot of ${where}, which ${holder} holds while it waits for ${next}`;
  });
  return `${texts.join("; ")}${steps.length > maxNamed ? "; …" : ""}`;
}

function namesText({ runs, running }: { readonly runs: readonly string[]; readonly running: number }): string {
  const named = runs.slice(0, maxNamed).join(", ");
  return running > Math.min(runs.length, maxNamed) ? `${named}, …` : named;
}

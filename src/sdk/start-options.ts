import type { Duration } from "../base/duration.ts";
import { TapeError } from "../model/errors.ts";
import { maxPriority, minPriority, type OnConflict, onConflicts } from "../model/queue.ts";
import { assertQueue, keyWeight } from "./queue.ts";
import type { QueueChoice } from "./queue-choice.ts";
import { assertKnownKeys, assertName, assertOneOf, durationOrThrow, numberOf, shown } from "./validate.ts";
import type { Workflow } from "./workflow.ts";

/** When and whether a run starts. */
export interface StartTiming extends QueueChoice {
  /** Starts, or joins its queue, this much later. Default: at once. */
  readonly delay?: Duration;
  /** The same at a time: a Date, or milliseconds since 1970. */
  readonly startAt?: Date | number;
  /**
   * The run is cancelled if it still waits in its queue after this time; its code is never called. Default: it waits
   * without end.
   */
  readonly expires?: Duration;
  /** At most one live run of the workflow has this key. Default: no unique key. */
  readonly unique?: { readonly key: string; readonly onConflict: OnConflict };
  /**
   * Starts with this key become one run with the last input, once no further start has come for `wait`. Default: not
   * debounced.
   */
  readonly debounce?: { readonly key: string; readonly wait: Duration; readonly maxWait?: Duration };
}

export const queueKeys = ["queue", "key", "priority"];
export const timingKeys = [...queueKeys, "delay", "startAt", "expires", "unique", "debounce"];

/** The fields of a run's spec that name its queue. */
export interface QueueFields {
  readonly queue?: string;
  readonly key?: string;
  readonly priority?: number;
  readonly weight?: number;
}

/** Resolves the queue of a start: that of the call, or that of the workflow. */
export function queueFieldsOf<I>(
  subject: string,
  { queue: usual, key: keyOf }: Pick<Workflow<I, unknown>, "queue" | "key">,
  input: I,
  choice: QueueChoice,
): QueueFields {
  const queue = choice.queue ?? usual;
  if (queue === undefined) {
    const field = choice.key === undefined ? "priority" : "key";
    if (choice.key === undefined && choice.priority === undefined) return {};
    throw new TapeError("TAPE_BAD_INPUT", `${subject}: ${field} needs a queue`, { field });
  }
  assertQueue(subject, queue);
  const key = choice.key ?? (queue === usual ? keyOf?.(input) : undefined) ?? "";
  if (typeof key !== "string") {
    throw new TapeError("TAPE_BAD_INPUT", `${subject}: the key is text, not ${shown(key)}`, { field: "key" });
  }
  const { priority } = choice;
  if (priority !== undefined) numberOf(subject, "priority", priority, 0, { min: minPriority, max: maxPriority });
  const weight = keyWeight(queue, key);
  return {
    queue: queue.name,
    key,
    ...(priority !== undefined && { priority }),
    ...(weight !== undefined && { weight }),
  };
}

/** The fields of a run's spec that say when it starts. */
export interface TimingFields extends QueueFields {
  readonly delayMs?: number;
  readonly startAt?: number;
  readonly expiresMs?: number;
  readonly unique?: { readonly key: string; readonly onConflict: OnConflict };
  readonly debounce?: { readonly key: string; readonly waitMs: number; readonly maxWaitMs?: number };
}

const atOnce: TimingFields = {};

export function timingFieldsOf<I>(
  subject: string,
  workflow: Pick<Workflow<I, unknown>, "queue" | "key">,
  input: I,
  timing: StartTiming,
): TimingFields {
  const { delay, startAt, expires, unique, debounce, queue = workflow.queue, key, priority } = timing;
  const unqueued = queue === undefined && key === undefined && priority === undefined;
  const untimed = delay === undefined && startAt === undefined && expires === undefined;
  if (unqueued && untimed && unique === undefined && debounce === undefined) return atOnce;
  const ms = (field: string, value: unknown): number => Math.ceil(durationOrThrow(subject, field, value));
  return {
    ...queueFieldsOf(subject, workflow, input, timing),
    ...(delay !== undefined && { delayMs: ms("delay", delay) }),
    ...(startAt !== undefined && { startAt: timeOf(subject, startAt) }),
    ...(expires !== undefined && { expiresMs: ms("expires", expires) }),
    ...(unique !== undefined && { unique: uniqueOf(subject, unique) }),
    ...(debounce !== undefined && { debounce: debounceOf(subject, debounce) }),
  };
}

function timeOf(subject: string, moment: unknown): number {
  const time = moment instanceof Date ? moment.getTime() : moment;
  if (typeof time === "number" && Number.isFinite(time) && time >= 0) return Math.ceil(time);
  const message = `${subject}: startAt is a Date or milliseconds since 1970, not ${shown(moment)}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "startAt" });
}

function uniqueOf(subject: string, unique: NonNullable<StartTiming["unique"]>): NonNullable<TimingFields["unique"]> {
  assertKnownKeys(`unique of ${subject}`, unique, ["key", "onConflict"]);
  const { key, onConflict } = unique;
  assertName(`${subject}: the unique key`, key);
  assertOneOf(subject, "unique.onConflict", onConflict, onConflicts);
  return { key, onConflict };
}

function debounceOf(
  subject: string,
  debounce: NonNullable<StartTiming["debounce"]>,
): NonNullable<TimingFields["debounce"]> {
  assertKnownKeys(`debounce of ${subject}`, debounce, ["key", "wait", "maxWait"]);
  const { key, wait, maxWait } = debounce;
  assertName(`${subject}: the debounce key`, key);
  const waitMs = Math.ceil(durationOrThrow(subject, "debounce.wait", wait, 1));
  if (maxWait === undefined) return { key, waitMs };
  return { key, waitMs, maxWaitMs: Math.ceil(durationOrThrow(subject, "debounce.maxWait", maxWait, waitMs)) };
}

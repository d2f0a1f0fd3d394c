import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import { defaultPriority, maxPriority, minPriority, onConflicts } from "../../model/queue.ts";
import type { RecordData } from "../../model/records.ts";
import type { QueuedData } from "../../model/start-shape.ts";
import type { RunSpec } from "../contract/store.ts";
import { checkName, checkObject, checkText, checkWhole } from "./basic.ts";

/** When a run starts, and in which queue. */

type StartData = Pick<RecordData<"run.created">, "queue" | "delayMs" | "startAt" | "expiresMs" | "unique" | "debounce">;

/** A hundred years: with a larger number, seconds were meant, or a date. */
const maxDelayMs = 100 * 366 * 86_400_000;
/** The latest time of a Date, less the longest delay. */
const maxTime = 8.64e15 - maxDelayMs;

function checkTime(what: string, given: unknown, min: number, max: number): asserts given is number {
  checkWhole(what, given, min);
  if (given > max) throw bad(what, `${what} is at most ${max}`);
}

/** A key of a queue; it may be empty. */
export function checkKey(what: string, key: unknown, limits: Limits): asserts key is string {
  if (typeof key === "string" && key.length > limits.keyLength) {
    const message = `${what} has ${key.length} characters, at most ${limits.keyLength} are allowed`;
    throw new TapeError("TAPE_TOO_LARGE", message, { field: what, limit: "keyLength" });
  }
  checkText(what, key, limits);
}

/** The part of a record that names a queue. */
export function checkQueued(given: QueuedData, limits: Limits): void {
  checkObject("queue", given);
  checkName("queue", given.name, limits);
  checkKey("key", given.key, limits);
  const { priority } = given;
  if (!Number.isSafeInteger(priority) || priority < minPriority || priority > maxPriority) {
    const message = `priority is a whole number from ${minPriority}, served first, to ${maxPriority}, not ${String(priority)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "priority" });
  }
  if (given.weight !== undefined) checkWhole("weight", given.weight, 1);
}

const atOnce: StartData = {};

/** When and in which queue a run starts. */
export function startDataOf(spec: RunSpec, limits: Limits): StartData {
  const { queue, key, priority, weight, delayMs, startAt, expiresMs, unique, debounce } = spec;
  const unqueued = queue === undefined && key === undefined && priority === undefined && weight === undefined;
  const untimed = delayMs === undefined && startAt === undefined && expiresMs === undefined;
  if (unqueued && untimed && unique === undefined && debounce === undefined) return atOnce;
  if (queue === undefined) {
    for (const [field, value] of Object.entries({ key, priority, weight, expiresMs })) {
      if (value !== undefined) throw bad(field, `${field} needs a queue`);
    }
  }
  if (delayMs !== undefined) checkTime("delayMs", delayMs, 0, maxDelayMs);
  if (startAt !== undefined) checkTime("startAt", startAt, 0, maxTime);
  if (expiresMs !== undefined) checkTime("expiresMs", expiresMs, 1, maxDelayMs);
  if (delayMs !== undefined && startAt !== undefined)
    throw bad("startAt", "a run has a delay or a start time, not both");
  const queued =
    queue === undefined ? undefined : { name: queue, key: key ?? "", priority: priority ?? defaultPriority };
  const data: StartData = {
    ...(queued !== undefined && { queue: weight === undefined ? queued : { ...queued, weight } }),
    ...(delayMs !== undefined && { delayMs }),
    ...(startAt !== undefined && { startAt }),
    ...(expiresMs !== undefined && { expiresMs }),
    ...(unique !== undefined && { unique: uniqueOf(unique, limits) }),
    ...(debounce !== undefined && { debounce: debounceOf(debounce, limits) }),
  };
  if (data.queue !== undefined) checkQueued(data.queue, limits);
  if (debounce === undefined) return data;
  for (const [field, value] of Object.entries({ delayMs, startAt, expiresMs, unique })) {
    if (value !== undefined) throw bad(field, `a debounced run has no ${field}: debounce decides when it starts`);
  }
  return data;
}

function uniqueOf(given: NonNullable<RunSpec["unique"]>, limits: Limits): NonNullable<StartData["unique"]> {
  checkObject("unique", given);
  const { key, onConflict } = given;
  checkName("unique.key", key, limits);
  checkKey("unique.key", key, limits);
  if (onConflicts.includes(onConflict)) return { key, onConflict };
  throw bad("unique.onConflict", `unique.onConflict is one of ${onConflicts.join(", ")}`);
}

function debounceOf(given: NonNullable<RunSpec["debounce"]>, limits: Limits): NonNullable<StartData["debounce"]> {
  checkObject("debounce", given);
  const { key, waitMs, maxWaitMs } = given;
  checkName("debounce.key", key, limits);
  checkKey("debounce.key", key, limits);
  checkTime("debounce.waitMs", waitMs, 1, maxDelayMs);
  if (maxWaitMs === undefined) return { key, waitMs };
  checkTime("debounce.maxWaitMs", maxWaitMs, waitMs, maxDelayMs);
  return { key, waitMs, maxWaitMs };
}

const bad = (field: string, message: string): TapeError => new TapeError("TAPE_BAD_INPUT", message, { field });

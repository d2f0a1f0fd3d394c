import type { Duration } from "../base/duration.ts";
import { TapeError } from "../model/errors.ts";
import {
  type CountMode,
  checkQueueSpec,
  countModes,
  type QueueSpec,
  type RateLimit,
  weightOf,
} from "../model/queue.ts";
import { assertKnownKeys, assertName, assertOneOf, durationOrThrow, functionOr, numberOf, shown } from "./validate.ts";

/** How often runs of a queue may start. */
export interface RateOptions {
  /** Starts per `per`, spread evenly. */
  readonly limit: number;
  /** The time to which `limit` refers. */
  readonly per: Duration;
  /** How many may start at once. Default 1. */
  readonly burst?: number;
}

/** Limits of each key of a queue. */
export interface KeyOptions {
  /** Runs of one key at once, in all processes. Default: no limit. */
  readonly concurrency?: number;
  /** How often runs of one key start. Default: no limit. */
  readonly rate?: RateOptions;
  /** A key of weight 2 gets twice the turns of a key of weight 1. Default 1. */
  readonly weight?: (key: string) => number;
}

/** The limits of a queue. Without any, it only orders its runs. */
export interface QueueOptions {
  /** Runs at once, in all processes. Default: no limit. */
  readonly concurrency?: number;
  /** Runs at once in one process. Default: no limit. */
  readonly perWorker?: number;
  /** How often runs start, by the store's clock. A run that continues does not count. Default: no limit. */
  readonly rate?: RateOptions;
  /** Limits of each key. Default: none. */
  readonly perKey?: KeyOptions;
  /** `running` (default): a run that waits gives up its slot. `started`: it keeps the slot until it has ended. */
  readonly counts?: CountMode;
}

/** A queue, as `queue` defines it. */
export interface QueueDefinition {
  readonly name: string;
  readonly spec: QueueSpec;
  /** The share of turns of a key; undefined: 1 for each. */
  readonly weight: ((key: string) => number) | undefined;
}

/**
 * Defines a queue: how many of its runs run at once, and how often they start.
 *
 * @throws TAPE_BAD_INPUT if a limit is not valid.
 * @example
 * const models = queue("models", { concurrency: 50, rate: { limit: 600, per: "1m" }, perKey: { concurrency: 2 } });
 */
export function queue(name: string, options: QueueOptions = {}): QueueDefinition {
  assertName("a queue", name);
  const subject = `queue ${name}`;
  assertKnownKeys(subject, options, ["concurrency", "perWorker", "rate", "perKey", "counts"], {
    weight: "a weight belongs to a key: perKey: { weight: (key) => … }",
    key: "the key belongs to the run: workflow(name, fn, { queue, key })",
  });
  const { concurrency, perWorker, rate, perKey, counts = "running" } = options;
  assertOneOf(subject, "counts", counts, countModes);
  const spec = {
    ...slotsOf(subject, "concurrency", concurrency),
    ...slotsOf(subject, "perWorker", perWorker),
    ...(rate !== undefined && { rate: rateOf(subject, "rate", rate) }),
    ...(perKey !== undefined && { perKey: keyLimitsOf(subject, perKey) }),
    counts,
  };
  checkQueueSpec(name, spec);
  return { name, spec, weight: perKey?.weight };
}

function keyLimitsOf(subject: string, perKey: KeyOptions): NonNullable<QueueSpec["perKey"]> {
  assertKnownKeys(`perKey of ${subject}`, perKey, ["concurrency", "rate", "weight"]);
  functionOr(subject, "perKey.weight", perKey.weight);
  return {
    ...slotsOf(subject, "concurrency", perKey.concurrency),
    ...(perKey.rate !== undefined && { rate: rateOf(subject, "perKey.rate", perKey.rate) }),
  };
}

/** Decodes an author's or an operator's rate. */
export function rateOf(subject: string, field: string, rate: RateOptions): RateLimit {
  assertKnownKeys(`${field} of ${subject}`, rate, ["limit", "per", "burst"]);
  return {
    limit: numberOf(subject, `${field}.limit`, rate.limit, 0, { min: 1, max: 1_000_000_000 }),
    perMs: Math.round(durationOrThrow(subject, `${field}.per`, rate.per, 1)),
    burst: numberOf(subject, `${field}.burst`, rate.burst, 1, { min: 1, max: 1_000_000 }),
  };
}

function slotsOf<F extends "concurrency" | "perWorker">(
  subject: string,
  field: F,
  given: number | undefined,
): { readonly [K in F]?: number } {
  if (given === undefined) return {};
  const value = numberOf(subject, field, given, 0, { min: 1, max: 1_000_000 });
  return { [field]: value } as { readonly [K in F]?: number };
}

/** Whether this is what `queue` returns. */
export function assertQueue(subject: string, given: unknown): asserts given is QueueDefinition {
  const { name, spec } = (given ?? {}) as Partial<QueueDefinition>;
  if (typeof given === "object" && typeof name === "string" && typeof spec === "object") return;
  const message = `${subject}: queue is what queue("name", { … }) returns, not ${shown(given)}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "queue" });
}

/** The weight of a key in thousandths; undefined: the default. */
export function keyWeight({ name, weight }: QueueDefinition, key: string): number | undefined {
  if (weight === undefined) return undefined;
  const given = weight(key);
  const scaled = weightOf(given);
  if (scaled !== undefined) return scaled;
  const message = `queue ${name}: the weight of a key is a number from 0.001 to 1000, not ${shown(given)}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "weight", queue: name });
}

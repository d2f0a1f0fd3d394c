import type { Log } from "../base/log.ts";
import { errorFields } from "../base/reason.ts";
import { explainQueue } from "../engine/served.ts";
import { TapeError } from "../model/errors.ts";
import type { QueueChange } from "../model/queue.ts";
import { type QueueDefinition, type RateOptions, rateOf } from "../sdk/queue.ts";
import { assertKnownKeys, numberOf } from "../sdk/validate.ts";
import type {
  AuditInfo,
  PartitionView,
  QueuePosition,
  QueueView,
  SlotFilter,
  SlotView,
  Store,
} from "../store/contract/store.ts";
import { readQueues } from "../store/read-queues.ts";

/** Limits of a queue that an operator sets; null: no limit. */
export interface QueueSettings {
  /** Runs at once, in all processes. */
  readonly concurrency?: number | null;
  /** How often runs start. */
  readonly rate?: RateOptions | null;
  /** Limits of each key. */
  readonly perKey?: { readonly concurrency?: number | null; readonly rate?: RateOptions | null };
}

/** The operator and the reason; `key`: only this key of the queue. */
export type QueueAction = AuditInfo & { readonly key?: string };

/**
 * Queues for operators: what waits and why, and the limits.
 *
 * @example
 * await app.queues.set("models", { concurrency: 20 }, { by: "ada", reason: "the provider asked us to" });
 */
export class Queues {
  readonly #store: Store;
  readonly #tenant: string;

  constructor(store: Store, tenant: string) {
    this.#store = store;
    this.#tenant = tenant;
  }

  /** All queues, by name. */
  list(): Promise<QueueView[]> {
    return readQueues(this.#store.read, this.#tenant);
  }

  /** A page of a queue's keys, after the key `above`. */
  keys(queue: string, page: { readonly above?: string; readonly limit?: number } = {}): Promise<PartitionView[]> {
    return this.#store.read.queuePartitions(this.#tenant, queue, page);
  }

  /** Runs that hold slots of the queue, then those that wait. */
  runs(queue: string, filter: SlotFilter = {}): Promise<SlotView[]> {
    return this.#store.read.queueSlots(this.#tenant, queue, filter);
  }

  /** Where the run is in its queue, and why it does not start. undefined: it is in no queue, or has left it. */
  explain(run: string): Promise<QueuePosition | undefined> {
    return explainQueue(this.#store, this.#tenant, run);
  }

  /** Nothing of the queue, or of one key, starts until it is resumed. Runs that hold slots continue. */
  pause(queue: string, { key, ...audit }: QueueAction): Promise<QueueView> {
    return this.#store.intake.pauseQueue(this.#tenant, queue, true, audit, key);
  }

  /** Lets runs of a paused queue, or of one key, start again. */
  resume(queue: string, { key, ...audit }: QueueAction): Promise<QueueView> {
    return this.#store.intake.pauseQueue(this.#tenant, queue, false, audit, key);
  }

  /** Sets limits until they are reset. Nothing is evicted: a lower limit applies to the next starts. */
  set(queue: string, settings: QueueSettings, audit: AuditInfo): Promise<QueueView> {
    return this.#store.intake.changeQueue(this.#tenant, queue, changeOf(queue, settings), audit);
  }

  /** Restores the limits of the definition. */
  reset(queue: string, audit: AuditInfo): Promise<QueueView> {
    return this.#store.intake.resetQueue(this.#tenant, queue, audit);
  }
}

function changeOf(queue: string, settings: QueueSettings): QueueChange {
  const subject = `queue ${queue}`;
  assertKnownKeys(subject, settings, ["concurrency", "rate", "perKey"], {
    counts: "what a queue counts is part of its definition",
    perWorker: "perWorker is part of its definition",
  });
  const { concurrency, rate, perKey } = settings;
  const limitsOf = (prefix: string, slots: number | null | undefined, pace: RateOptions | null | undefined) => {
    if (slots !== undefined && slots !== null) numberOf(subject, `${prefix}concurrency`, slots, 0, { min: 1 });
    return {
      ...(slots !== undefined && { concurrency: slots }),
      ...(pace !== undefined && { rate: pace === null ? null : rateOf(subject, `${prefix}rate`, pace) }),
    };
  };
  if (perKey !== undefined) assertKnownKeys(`perKey of ${subject}`, perKey, ["concurrency", "rate"]);
  const change = {
    ...limitsOf("", concurrency, rate),
    ...(perKey !== undefined && { perKey: limitsOf("perKey.", perKey.concurrency, perKey.rate) }),
  };
  if (Object.keys(change).length > 0) return change;
  throw new TapeError("TAPE_BAD_INPUT", `${subject}: name at least one limit`, { field: "settings" });
}

/** Writes the definitions of a runner's queues. The last process to start decides; what an operator has set stays. */
export async function defineQueues(
  { store, tenant, log }: { readonly store: Store; readonly tenant: string; readonly log: Log },
  queues: Iterable<QueueDefinition>,
): Promise<void> {
  for (const { name, spec } of queues) {
    const { replaced } = await store.intake.putQueue(tenant, name, spec);
    if (replaced !== undefined) log("info", "queue.changed", { queue: name, from: replaced, to: spec });
  }
}

/** The same for a runner that is added later: a start that needs the queue reports its absence. */
export function defineQueuesLater(...[deps, queues]: Parameters<typeof defineQueues>): void {
  defineQueues(deps, queues).catch((error: unknown) => deps.log("warn", "queue.undefined", { ...errorFields(error) }));
}

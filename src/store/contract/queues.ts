import type { RunStatus } from "../../model/machines.ts";
import type { QueueChange, QueueLimits, QueueReason, QueueSpec, SlotState } from "../../model/queue.ts";
import type { AuditInfo } from "./admin.ts";
import type { Page } from "./list.ts";

/** Definitions and settings of queues, called as `store.intake.x`. */
export interface QueueWriteOps {
  /**
   * Defines a queue, or changes its definition. What an operator has set stays in effect. TAPE_QUEUE_CHANGED if
   * `counts` would change while runs wait or hold slots.
   */
  putQueue(tenant: string, name: string, spec: QueueSpec): Promise<QueueDefined>;
  /** Sets limits until they are reset. Nothing is evicted: a lower limit applies to the next starts. */
  changeQueue(tenant: string, name: string, change: QueueChange, audit: AuditInfo): Promise<QueueView>;
  /** Restores the limits of the definition. */
  resetQueue(tenant: string, name: string, audit: AuditInfo): Promise<QueueView>;
  /** Of a paused queue or key nothing starts. Runs that hold slots continue. */
  pauseQueue(tenant: string, name: string, paused: boolean, audit: AuditInfo, key?: string): Promise<QueueView>;
}

/** Queues for operators, called as `store.read.x`. */
export interface QueueReadOps {
  /** By name, after `above`. */
  queues(tenant: string, page?: { above?: string; limit?: number }): Promise<Page<QueueView>>;
  /** Keys with a partition, by key, after `above`. TAPE_QUEUE_UNKNOWN if there is no such queue. */
  queuePartitions(
    tenant: string,
    queue: string,
    page?: { above?: string; limit?: number },
  ): Promise<Page<PartitionView>>;
  /** Runs that wait in a queue or hold a slot of it; of each key in the order in which they start. */
  queueSlots(tenant: string, queue: string, filter?: SlotFilter): Promise<Page<SlotView>>;
  /** Where a run is in its queue, and why it does not start. undefined: it is in none, or has left it. */
  queuePosition(tenant: string, run: string): Promise<QueuePosition | undefined>;
}

/** The result of defining a queue. */
export interface QueueDefined {
  readonly name: string;
  readonly version: number;
  /** The previous definition, if this call has replaced it. */
  readonly replaced?: QueueSpec;
  /** true: the queue did not exist. */
  readonly fresh: boolean;
}

/** By whom and why something was paused. */
export interface PauseView {
  readonly by: string;
  readonly reason: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** A queue as operators see it. */
export interface QueueView {
  readonly name: string;
  readonly version: number;
  /** As its author defined it. */
  readonly spec: QueueSpec;
  /** What an operator has set; undefined: nothing. */
  readonly override?: QueueChange;
  /** In effect. */
  readonly limits: QueueLimits;
  readonly paused?: PauseView;
  /** Slots held. */
  readonly running: number;
  /** Runs that wait for a slot. */
  readonly waiting: number;
  /** Keys with a partition. */
  readonly keys: number;
  /** There are more keys than were counted: `waiting` and `keys` are minimums. */
  readonly more: boolean;
  /** How long the oldest of the counted runs has waited; undefined: none waits. */
  readonly oldestWaitMs?: number;
  /** When the rate allows the next start, if that is later than now. */
  readonly nextAt?: number;
  /** Starts since the queue exists. Continued runs do not count. */
  readonly started: number;
}

/** The runs of one key in a queue. */
export interface PartitionView {
  /** The key of the runs. */
  readonly key: string;
  /** Runs that have a slot. */
  readonly running: number;
  /** Runs that wait for one. */
  readonly waiting: number;
  /** 1 is the usual weight. */
  readonly weight: number;
  readonly paused?: PauseView;
  /** How long the oldest of them waits. */
  readonly oldestWaitMs?: number;
  /** When the key's rate allows its next start, if that is later than now. */
  readonly nextAt?: number;
  /** Whether its first run could start now, as far as this key is concerned. */
  readonly ready: boolean;
}

/** Which runs of a queue to list. */
export interface SlotFilter {
  /** Only runs of this key. */
  readonly key?: string;
  /** Default: HELD, then QUEUED. */
  readonly state?: "QUEUED" | "HELD";
  readonly limit?: number;
}

/** A run in a queue. */
export interface SlotView {
  readonly run: string;
  readonly journal: number;
  readonly workflow: string;
  /** The key of the run in its queue. */
  readonly key: string;
  /** 0: it has run before and continues; otherwise its priority. */
  readonly class: number;
  readonly state: SlotState;
  /** How long it has been in this state. */
  readonly sinceMs: number;
  readonly status: RunStatus;
}

/** A run's position in its queue. */
export interface QueuePosition {
  readonly run: string;
  readonly queue: string;
  /** The key of the run in its queue. */
  readonly key: string;
  /** Its priority. */
  readonly class: number;
  readonly state: SlotState;
  /** How long it waits. */
  readonly sinceMs: number;
  /** Empty: nothing keeps it from starting. Of a run that has started: the cycle that keeps it waiting, if any. */
  readonly reasons: readonly QueueReason[];
}

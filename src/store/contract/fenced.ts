import type { Fence } from "../../model/fence.ts";
import type { ItemResult } from "../../model/lease.ts";
import type { NewRecord } from "../../model/records.ts";
import type { BlobWriteOps } from "./blobs.ts";
import type { CheckpointOps } from "./events.ts";
import type { StreamWriteOps } from "./streams.ts";

/** Writes under a fence: the only way in which records enter a journal. */
export interface FencedOps extends CheckpointOps, StreamWriteOps, BlobWriteOps {
  /** Appends records after a head, and everything that they change, in one transaction. */
  append(fence: Fence, entry: AppendRequest): Promise<AppendResult>;
  /** Independent writes in one call: each with its own fence and its own result. */
  appendAll(batch: readonly (readonly [Fence, AppendRequest])[]): Promise<ItemResult<AppendResult>[]>;
}

/** Records to append, and the head of the journal that they follow. */
export interface AppendRequest {
  /** The seq of the journal's last record as the writer knows it. */
  readonly after: number;
  readonly records: readonly NewRecord[];
  /** The first record of the run's current generation, as the writer knows it: the limit of a journal counts from it. */
  readonly begins?: number;
}

/** The new head of the journal, and its note counter. */
export interface AppendResult {
  /** The number of the last record. */
  readonly head: number;
  /** Notes ever sent to this inbox. If more than were taken, some are unread. */
  readonly notes: number;
}

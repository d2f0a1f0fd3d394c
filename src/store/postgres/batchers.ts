import type { Batcher } from "../../base/batcher.ts";
import type { AppendResult, CreateResult } from "../contract/store.ts";
import type { TimerRef } from "../sql/plans/intake.ts";
import type { AppendItem, CreateItem, FireResult, ParkResult } from "./batched-writes.ts";
import type { ChildEndResult, SpawnItem } from "./child-writes.ts";
import type { ChunksItem } from "./stream-writes.ts";

/** The batchers of the batched route. */
export interface BatchedWrites {
  readonly append: Batcher<AppendItem, AppendResult>;
  readonly endSleep: Batcher<AppendItem, AppendResult>;
  readonly park: Batcher<AppendItem, ParkResult>;
  readonly end: Batcher<AppendItem, AppendResult>;
  readonly endChild: Batcher<AppendItem, ChildEndResult>;
  readonly spawn: Batcher<SpawnItem, AppendResult>;
  readonly create: Batcher<CreateItem, CreateResult>;
  readonly createCounted: Batcher<CreateItem, CreateResult>;
  readonly createLabelled: Batcher<CreateItem, CreateResult>;
  /** Tenants known to have a quota on runs. */
  readonly counted: ReadonlySet<string>;
  readonly fire: Batcher<TimerRef, FireResult>;
  readonly parkQueued: Batcher<AppendItem, ParkResult>;
  readonly endQueued: Batcher<AppendItem, AppendResult>;
  readonly stream: Batcher<ChunksItem, object>;
  readonly createQueued: Batcher<CreateItem, CreateResult>;
}

import type { Fence } from "../../model/fence.ts";
import type { ItemResult } from "../../model/lease.ts";

/** What runs stream, beside their journals: chunks under growing offsets. */

/** Called as `store.fenced.x`. */
export interface StreamWriteOps {
  /**
   * Chunks of many runs in one call, each item with its own fence and its own result. The fence is compared in the
   * transaction of the chunks. A repeat of an item whose response was lost writes nothing more.
   */
  appendChunks(batch: readonly (readonly [Fence, ChunkAppend])[]): Promise<ItemResult<object>[]>;
}

/** Called as `store.read.x`. */
export interface StreamReadOps {
  /** One page for each request, in order; `undefined`: there is no such run. */
  chunks(tenant: string, wanted: readonly ChunkRequest[]): Promise<(ChunkPage | undefined)[]>;
  /** The streams of a run, by name. Empty also for a run that does not exist. */
  streams(tenant: string, run: string): Promise<StreamView[]>;
  /** The operations that have chunks in the stream, by position, and the bytes of each. */
  streamParts(tenant: string, run: string, stream: string): Promise<StreamPart[]>;
  /** The stream that a token may read; undefined: the store has not issued it, it has expired, or the run is gone. */
  streamAccess(token: string): Promise<StreamAccess | undefined>;
}

/** Called as `store.intake.x`. */
export interface StreamTokenOps {
  /** A token that reads this stream of this run and nothing else, for `ttlMs`. */
  streamToken(tenant: string, run: string, stream: string, ttlMs: number): Promise<StreamToken>;
}

/** Chunks of one run: a transaction of their own. */
export interface ChunkAppend {
  /** The chunks of each stream. */
  readonly streams: readonly StreamAppend[];
}

/** Chunks to append to one stream. */
export interface StreamAppend {
  readonly name: string;
  /** The offset of the first chunk: one more than the stream's last, 0 for a new stream. */
  readonly from: number;
  /** How long the chunks are kept after the run's end; absent: as long as the run. Decided by the first chunk. */
  readonly retainMs?: number;
  readonly chunks: readonly NewChunk[];
}

/** A chunk, or the mark that its part starts again, which deletes the part's earlier chunks. */
export type NewChunk =
  | { readonly part: number; readonly value: unknown }
  | { readonly part: number; readonly rewound: true };

/** Which chunks of a stream to read. */
export interface ChunkRequest {
  readonly run: string;
  readonly stream: string;
  /** The first offset. */
  readonly from: number;
  readonly limit?: number;
}

/** Some chunks of a stream, in order. */
export interface ChunkPage {
  readonly journal: number;
  /** The chunks. */
  readonly chunks: readonly Chunk[];
  /** More chunks may follow already. */
  readonly more: boolean;
  /** The run has ended: after these chunks, unless there are more, none will come. */
  readonly ended: boolean;
}

/** A chunk of a stream, as readers get it. */
export type Chunk = {
  /** Its place in the stream. */
  readonly offset: number;
  /** The position of the operation that wrote it. */
  readonly part: number;
  /** When it was stored, in milliseconds since 1970. */
  readonly at: number;
} & ({ readonly value: unknown } | { readonly rewound: true });

/** A stream, and how far it is. */
export interface StreamView {
  readonly name: string;
  /** The offset of the next chunk. */
  readonly next: number;
  readonly bytes: number;
  /** When its last chunk was written. */
  readonly at: number;
  /** How long its chunks are kept after the end of the run. */
  readonly retainMs?: number;
}

/** The chunks of one operation in a stream. */
export interface StreamPart {
  /** The position of the operation. */
  readonly part: number;
  readonly bytes: number;
}

/** A token that reads one stream. */
export interface StreamToken {
  /** The secret that reads the stream. */
  readonly token: string;
  readonly expiresAt: number;
}

/** What the token of a stream may read. */
export interface StreamAccess {
  readonly tenant: string;
  readonly run: string;
  readonly stream: string;
  readonly expiresAt: number;
}

import type { Fence } from "../../model/fence.ts";
import type { LeaseTarget } from "../../model/lease.ts";

/**
 * Blobs: large parts of recorded values, beside the journal that they belong to. A blob is the encoded text of one part,
 * named by its SHA-256 and stored in chunks. It is stored before the record that refers to it, and deleted with the
 * journal. A journal has its own blobs: none is shared with another run, let alone another tenant.
 */

/** Called as `store.fenced.x`. */
export interface BlobWriteOps {
  /** Stores one chunk, under the token of the journal. One that is there already is left as it is. */
  putBlob(fence: Fence, part: BlobPart): Promise<object>;
}

/** Called as `store.read.x`. */
export interface BlobReadOps {
  /** One chunk of a blob; undefined: the journal has no such chunk, or there is no such journal. */
  blob(tenant: string, target: LeaseTarget, blob: string, n: number): Promise<BlobChunk | undefined>;
}

export interface BlobPart {
  readonly blob: string;
  /** The number of the chunk, from 0 on, and how many the blob has. */
  readonly n: number;
  readonly chunks: number;
  /** Well-formed text without U+0000, as the codec writes it. */
  readonly text: string;
}

export interface BlobChunk {
  readonly chunks: number;
  readonly text: string;
}

import { CodecError } from "./format.ts";

/** Found by this symbol, not by `instanceof`: two copies of this package may meet in one process. */
const mark = Symbol.for("durable-tape.blob");

/** What a blob holds: long text, bytes, or any other value. */
export const blobTypes = ["text", "bytes", "value"] as const;
export type BlobType = (typeof blobTypes)[number];

/** Stands for a large part of a value whose text is stored beside it. */
export class BlobRef {
  /** SHA-256 (hex) of the part's text. */
  readonly blob: string;
  /** Bytes of that text. */
  readonly bytes: number;
  readonly type: BlobType;

  constructor(blob: string, bytes: number, type: BlobType) {
    this.blob = blob;
    this.bytes = bytes;
    this.type = type;
  }

  get [mark](): true {
    return true;
  }
}

export function isBlobRef(value: unknown): value is BlobRef {
  return typeof value === "object" && value !== null && (value as { [mark]?: unknown })[mark] === true;
}

export const isBlobName = (value: unknown): value is string =>
  typeof value === "string" && /^[0-9a-f]{64}$/.test(value);

export function restoreBlobRef(data: unknown, path: string): BlobRef {
  const { blob, bytes, type } = (data ?? {}) as Partial<Record<keyof BlobRef, unknown>>;
  const known = blobTypes.find((one) => one === type);
  if (!isBlobName(blob) || !Number.isSafeInteger(bytes) || (bytes as number) < 1 || known === undefined) {
    throw new CodecError("bad_text", path, "not a reference to a blob");
  }
  return new BlobRef(blob, bytes as number, known);
}

/** Decoded values that hold references: readers of all others need not search them. */
const holders = new WeakSet<object>();

export function markBlobHolder(value: unknown): void {
  if (typeof value === "object" && value !== null) holders.add(value);
}

export const holdsBlobs = (value: unknown): boolean =>
  typeof value === "object" && value !== null && holders.has(value);

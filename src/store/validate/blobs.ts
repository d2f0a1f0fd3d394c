import { isBlobName, sizeOf } from "../../base/codec.ts";
import { TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { Limits } from "../../model/limits.ts";
import type { BlobPart } from "../contract/store.ts";
import { checkObject, checkWhole } from "./basic.ts";
import { checkFence } from "./entry.ts";

/** Characters of one chunk: a write of some ten milliseconds, and a request that every server accepts. */
export const blobChunkChars = 512 * 1024;

/** A chunk that is checked. */
export interface CheckedBlobPart extends BlobPart {
  readonly bytes: number;
}

export function checkBlobPart(fence: Fence, part: BlobPart, limits: Limits): CheckedBlobPart {
  checkFence(fence);
  checkObject("part", part);
  const { blob, n, chunks, text } = part;
  if (!isBlobName(blob)) throw new TapeError("TAPE_BAD_INPUT", "a blob is named by its SHA-256", { field: "blob" });
  checkWhole("chunks", chunks, 1);
  checkWhole("n", n);
  if (n >= chunks)
    throw new TapeError("TAPE_BAD_INPUT", `a blob of ${chunks} chunks has no chunk ${n}`, { field: "n" });
  const fits = typeof text === "string" && text.length > 0 && text.isWellFormed() && !text.includes("\0");
  if (!fits) throw new TapeError("TAPE_BAD_INPUT", "a chunk is well-formed text without U+0000", { field: "text" });
  if (text.length > blobChunkChars) {
    const message = `a chunk has ${text.length} characters, at most ${blobChunkChars} are allowed`;
    throw new TapeError("TAPE_TOO_LARGE", message, { field: "text", limit: "blobChunkChars" });
  }
  // Every chunk but the last is full, or one character short where a pair of surrogates must stay together.
  if ((chunks - 1) * (blobChunkChars - 1) > limits.blobBytes) throw blobTooLarge(limits);
  return { blob, n, chunks, text, bytes: sizeOf(text) };
}

export function blobTooLarge(limits: Limits): TapeError {
  const message = `a part of a value takes more than ${limits.blobBytes} bytes`;
  return new TapeError("TAPE_TOO_LARGE", message, { limit: "blobBytes" });
}

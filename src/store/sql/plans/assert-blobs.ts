import type { BlobRef } from "../../../base/codec.ts";
import { TapeError } from "../../../model/errors.ts";
import { type Plan, queryRow } from "../plan.ts";

/** A record implies its blobs: a reader finds them whole. */
export function* assertBlobs(journal: number, blobs: readonly BlobRef[]): Plan<void> {
  for (const { blob, bytes } of blobs) {
    const found = yield* queryRow("blob.stored", { journal, blob });
    const isWhole = Number(found?.stored ?? 0) === Number(found?.chunks ?? -1) && Number(found?.bytes) === bytes;
    if (isWhole) continue;
    const message = `the record refers to blob ${blob}, which this journal does not have`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "records", blob, journal });
  }
}

import { type BlobRef, isBlobRef } from "../../base/codec.ts";

/** Whether the text of a record may name a blob: its type table does, or a text of the user looks like it. */
export const mayHoldBlobs = (body: string): boolean => body.startsWith('{"$codec"') && body.includes(':"blob"');

/** Every reference in the data. */
export function blobsIn(data: unknown): BlobRef[] {
  if (isBlobRef(data)) return [data];
  if (typeof data !== "object" || data === null) return [];
  const items = data instanceof Map || data instanceof Set ? [...data] : Object.values(data);
  return items.flatMap(blobsIn);
}

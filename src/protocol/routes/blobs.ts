import { z } from "zod";
import { group } from "../route.ts";
import { fence, name, target, whole, wholeText } from "../shapes.ts";

const blob = z
  .string()
  .max(64)
  .regex(/^[0-9a-f]{64}$/);
/** A chunk is text of at most half a million characters; the store checks it. */
const text = z.string().min(1).max(1_048_576);
const chunk = z.strictObject({ chunks: whole, text });

/** Large parts of recorded values. */
export const blobs = group({
  "runs.blob": {
    method: "GET",
    path: "/v1/runs/{id}/blobs/{blob}",
    role: "reader",
    repeat: "read",
    summary: "Reads one chunk of a large part of a recorded value; absent: the run has no such chunk",
    params: z.strictObject({ id: name, blob }),
    query: z.strictObject({ n: wholeText.exactOptional() }),
    answer: z.strictObject({ chunk: chunk.exactOptional() }),
  },
  "store.putBlob": {
    method: "POST",
    path: "/v1/store/put-blob",
    role: "worker",
    repeat: "same",
    summary: "Stores one chunk of a large part of a value, before the record that refers to it",
    size: "payload",
    body: z.strictObject({ fence, part: z.strictObject({ blob, n: whole, chunks: whole, text }) }),
    answer: z.strictObject({}),
  },
  "store.blob": {
    method: "POST",
    path: "/v1/store/blob",
    role: "reader",
    repeat: "read",
    summary: "Reads one chunk of a large part of a value in any journal of the tenant",
    body: z.strictObject({ target, blob, n: whole }),
    answer: z.strictObject({ chunk: chunk.exactOptional() }),
  },
});

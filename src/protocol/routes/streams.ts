import { z } from "zod";
import { group } from "../route.ts";
import { fence, itemResult, maxItems, name, rows, spanMs, value, whole, wholeText } from "../shapes.ts";
import { chunk, streamView } from "../views.ts";

const byId = z.strictObject({ id: name });
/** A token is a name in base64url, two numbers and a MAC. */
const streamToken = z.string().min(1).max(4_096);
const part = { part: whole };
const newChunk = z.union([
  z.strictObject({ ...part, rewound: z.literal(true) }),
  z.strictObject({ ...part, value: value.exactOptional() }),
]);
const chunkAppend = z.strictObject({
  streams: z
    .array(
      z.strictObject({
        ...{ name, from: whole, retainMs: spanMs.exactOptional() },
        chunks: z.array(newChunk).max(10_000),
      }),
    )
    .max(64),
});

/** What runs stream: for people who watch, and for the workers that write. */
export const streams = group({
  "runs.streams": {
    method: "GET",
    path: "/v1/runs/{id}/streams",
    role: "reader",
    repeat: "read",
    summary: "Reads the names of the run's streams, and how far they are",
    params: byId,
    answer: z.strictObject({ streams: z.array(streamView) }),
  },
  "runs.stream": {
    method: "GET",
    path: "/v1/runs/{id}/streams/{name}",
    role: "reader",
    repeat: "read",
    summary:
      "Streams the chunks of one stream from an offset on, one per line, or as events with Accept: text/event-stream; " +
      "ends with the run. Resume after the last offset, by from or Last-Event-ID. A token of this stream suffices",
    params: z.strictObject({ id: name, name }),
    query: z.strictObject({ from: wholeText.exactOptional(), token: streamToken.exactOptional() }),
    answer: chunk,
    stream: true,
    events: true,
    errors: ["TAPE_RUN_NOT_FOUND"],
  },
  "runs.streamToken": {
    method: "POST",
    path: "/v1/runs/{id}/stream-tokens",
    role: "starter",
    repeat: "read",
    summary: "Returns a token that reads one stream of this run, and nothing else, until it expires",
    params: byId,
    body: z.strictObject({ stream: name, ttlMs: spanMs }),
    answer: z.strictObject({ token: z.string(), expiresAt: whole }),
    errors: ["TAPE_RUN_NOT_FOUND"],
  },
  "store.appendChunks": {
    method: "POST",
    path: "/v1/store/append-chunks",
    role: "worker",
    repeat: "same",
    summary: "Appends chunks of many runs in one call: each item has its own fence and result",
    size: "batch",
    body: z.strictObject({
      batch: z
        .array(z.strictObject({ fence, append: chunkAppend }))
        .max(maxItems)
        .min(1),
    }),
    answer: z.strictObject({ results: z.array(itemResult({})) }),
  },
  "store.chunks": {
    method: "POST",
    path: "/v1/store/chunks",
    role: "reader",
    repeat: "read",
    summary: "Reads one page of chunks for each of these streams; null: there is no such run",
    size: "names",
    body: z.strictObject({
      wanted: z
        .array(z.strictObject({ run: name, stream: name, from: whole, limit: rows.exactOptional() }))
        .max(maxItems),
    }),
    answer: z.strictObject({
      pages: z.array(
        z.strictObject({ journal: whole, chunks: z.array(chunk), more: z.boolean(), ended: z.boolean() }).nullable(),
      ),
    }),
  },
  "store.streamParts": {
    method: "POST",
    path: "/v1/store/stream-parts",
    role: "worker",
    repeat: "read",
    summary: "Reads which operations have chunks in a stream, by position, and their bytes",
    body: z.strictObject({ run: name, stream: name }),
    answer: z.strictObject({ parts: z.array(z.strictObject({ part: whole, bytes: whole })) }),
  },
  "store.streamAccess": {
    method: "POST",
    path: "/v1/store/stream-access",
    role: "reader",
    repeat: "read",
    summary: "Reads which stream of the credential's tenant a token reads; absent: none",
    body: z.strictObject({ token: streamToken }),
    answer: z.strictObject({
      access: z.strictObject({ tenant: name, run: name, stream: name, expiresAt: whole }).exactOptional(),
    }),
  },
});

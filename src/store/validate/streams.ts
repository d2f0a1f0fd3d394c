import { encode, sizeOf } from "../../base/codec.ts";
import { TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { Limits } from "../../model/limits.ts";
import type { ChunkAppend, NewChunk, StreamAppend, StreamReadOps, StreamTokenOps } from "../contract/store.ts";
import { checkBatch, ifGiven, nameChecker } from "./arguments.ts";
import { checkFence, checkList, checkName, checkObject, checkPayload, checkWhole } from "./entry.ts";
import { filterChecks } from "./filters.ts";

/** A chunk that is checked and encoded. No body: its part starts again. */
export interface CheckedChunk {
  readonly part: number;
  readonly body: string | null;
  readonly bytes: number;
}

export interface CheckedStream extends Pick<StreamAppend, "name" | "from" | "retainMs"> {
  readonly chunks: readonly CheckedChunk[];
}

/** The chunks of one run, checked and encoded. */
export interface CheckedChunks {
  readonly streams: readonly CheckedStream[];
  readonly bytes: number;
  readonly rewinds: boolean;
}

export function checkChunks(fence: Fence, append: ChunkAppend, limits: Limits): CheckedChunks {
  checkFence(fence);
  checkObject("append", append);
  checkList("streams", append.streams);
  if (append.streams.length === 0)
    throw new TapeError("TAPE_BAD_INPUT", "an append needs at least one chunk", { field: "streams" });
  const streams = append.streams.map((stream) => checkStream(stream, limits));
  if (new Set(streams.map(({ name }) => name)).size < streams.length)
    throw new TapeError("TAPE_BAD_INPUT", "an append names each stream once", { field: "streams" });
  const all = streams.flatMap(({ chunks }) => chunks);
  if (all.length > limits.batchItems)
    throw new TapeError("TAPE_TOO_LARGE", `an append holds at most ${limits.batchItems} chunks`, {
      limit: "batchItems",
    });
  return {
    streams,
    bytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
    rewinds: all.some(({ body }) => body === null),
  };
}

function checkStream(stream: StreamAppend, limits: Limits): CheckedStream {
  checkObject("stream", stream);
  const { name, from, retainMs, chunks } = stream;
  checkName("stream", name, limits);
  checkWhole("from", from);
  ifGiven(retainMs, (ms) => checkWhole("retainMs", ms, 1));
  checkList("chunks", chunks);
  if (chunks.length === 0)
    throw new TapeError("TAPE_BAD_INPUT", `stream ${name}: an append needs at least one chunk`, { field: "chunks" });
  const checked = chunks.map((chunk) => checkChunk(chunk, limits));
  return { name, from, ...(retainMs !== undefined && { retainMs }), chunks: checked };
}

function checkChunk(chunk: NewChunk, limits: Limits): CheckedChunk {
  checkObject("chunk", chunk);
  const { part } = chunk;
  checkWhole("part", part);
  if ("rewound" in chunk) return { part, body: null, bytes: 0 };
  const body = encodeChunk(chunk.value, limits);
  return { part, body, bytes: sizeOf(body) };
}

/** A value of a stream as the store keeps it. */
export function encodeChunk(value: unknown, limits: Limits): string {
  const body = checkPayload("chunk", () => encode(value), limits);
  if (sizeOf(body) <= limits.chunkBytes) return body;
  const message = `a chunk takes ${sizeOf(body)} bytes, at most ${limits.chunkBytes} are allowed`;
  throw new TapeError("TAPE_TOO_LARGE", message, { limit: "chunkBytes" });
}

export function streamTooLarge(stream: string, limits: Limits): TapeError {
  const message = `stream ${stream} has more than ${limits.streamBytes} bytes`;
  return new TapeError("TAPE_TOO_LARGE", message, { limit: "streamBytes", stream });
}

export function tooManyStreams(stream: string, limits: Limits): TapeError {
  const message = `stream ${stream} is one too many: a run has at most ${limits.streams}`;
  return new TapeError("TAPE_TOO_LARGE", message, { limit: "streams", stream });
}

/** A token that outlives a year is a mistake. */
const maxTtlMs = 366 * 86_400_000;
/** A token is a name in base64url, two numbers and a MAC. */
const maxTokenChars = 4_096;

export function validatedStreamReads(read: StreamReadOps, limits: Limits): StreamReadOps {
  const { names, page } = filterChecks(limits);
  return {
    async chunks(tenant, wanted) {
      names({ tenant });
      checkBatch(wanted, limits);
      for (const request of wanted) {
        checkObject("request", request);
        names({ run: request.run, stream: request.stream });
        checkWhole("from", request.from);
        page(request);
      }
      return wanted.length === 0 ? [] : read.chunks(tenant, wanted);
    },
    async streams(tenant, run) {
      names({ tenant, run });
      return read.streams(tenant, run);
    },
    async streamParts(tenant, run, stream) {
      names({ tenant, run, stream });
      return read.streamParts(tenant, run, stream);
    },
    async streamAccess(token) {
      const possible = typeof token === "string" && token.length > 0 && token.length <= maxTokenChars;
      return possible ? read.streamAccess(token) : undefined;
    },
  };
}

export function validatedStreamTokens(intake: StreamTokenOps, limits: Limits): StreamTokenOps {
  const names = nameChecker(limits);
  return {
    async streamToken(tenant, run, stream, ttlMs) {
      names({ tenant, run, stream });
      checkWhole("ttlMs", ttlMs, 1);
      if (ttlMs > maxTtlMs) throw new TapeError("TAPE_BAD_INPUT", `ttlMs is at most ${maxTtlMs}`, { field: "ttlMs" });
      return intake.streamToken(tenant, run, stream, ttlMs);
    },
  };
}

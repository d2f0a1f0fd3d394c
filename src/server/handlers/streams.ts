import type { Fence } from "../../model/fence.ts";
import type { streams } from "../../protocol/routes/streams.ts";
import { fenceOf } from "../../protocol/shapes.ts";
import type { ChunkAppend, NewChunk } from "../../store/contract/store.ts";
import { StreamTails } from "../../store/stream-tails.ts";
import type { HandlersOf, ServerDeps } from "../handler-types.ts";
import { existingRun } from "./runs.ts";

export function streamHandlers({ store, clock }: ServerDeps): HandlersOf<typeof streams> {
  const { read, fenced, intake } = store;
  const tails = new StreamTails(store, clock);
  return {
    async "runs.streams"({ params: { id } }, { tenant }) {
      return { streams: await read.streams(tenant, id) };
    },
    async "runs.stream"({ params: { id, name }, query }, { tenant, signal, resumeAfter }) {
      await existingRun(read, tenant, id);
      const from = query.from ?? (resumeAfter === undefined ? 0 : resumeAfter + 1);
      return tails.follow({ tenant, run: id, stream: name, from, signal, endSlow: true });
    },
    "runs.streamToken": ({ params: { id }, body: { stream, ttlMs } }, { tenant }) =>
      intake.streamToken(tenant, id, stream, ttlMs),
    async "store.appendChunks"({ body: { batch } }, { tenant }) {
      const items = batch.map(({ fence, append }): readonly [Fence, ChunkAppend] => [
        fenceOf(tenant, fence),
        { streams: append.streams.map((stream) => ({ ...stream, chunks: stream.chunks.map(newChunkOf) })) },
      ]);
      return { results: await fenced.appendChunks(items) };
    },
    async "store.chunks"({ body: { wanted } }, { tenant }) {
      const pages = await read.chunks(tenant, wanted);
      return { pages: pages.map((page) => (page === undefined ? null : { ...page, chunks: [...page.chunks] })) };
    },
    async "store.streamParts"({ body: { run, stream } }, { tenant }) {
      return { parts: await read.streamParts(tenant, run, stream) };
    },
    async "store.streamAccess"({ body: { token } }, { tenant }) {
      const access = await read.streamAccess(token);
      return access?.tenant === tenant ? { access } : {};
    },
  };
}

/** The wire leaves out a value that is undefined. */
const newChunkOf = (chunk: { readonly part: number; readonly value?: unknown; readonly rewound?: true }): NewChunk =>
  chunk.rewound === true ? { part: chunk.part, rewound: true } : { part: chunk.part, value: chunk.value };

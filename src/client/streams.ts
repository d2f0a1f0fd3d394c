import type { Fence } from "../model/fence.ts";
import { notFound } from "../model/not-found.ts";
import type {
  Chunk,
  ChunkAppend,
  ChunkPage,
  StreamReadOps,
  StreamTokenOps,
  StreamWriteOps,
} from "../store/contract/store.ts";
import { checkBatch, runBatch, staleError } from "../store/validate/arguments.ts";
import { checkList } from "../store/validate/entry.ts";
import { checkChunks } from "../store/validate/streams.ts";
import { inParts, isOwn, type RemoteContext } from "./context.ts";

/** Checked here, so that the writer gets the error; the store behind the server checks again, with the fence. */
export function remoteStreamWrites(deps: RemoteContext): StreamWriteOps {
  const { caller, limits } = deps;
  return {
    async appendChunks(batch) {
      checkBatch(batch, limits);
      const good: (readonly [Fence, ChunkAppend])[] = [];
      const checked = await runBatch(batch, limits, async (item) => {
        checkList("a batch's item", item);
        const [fence, append] = item;
        checkChunks(fence, append, limits);
        if (!isOwn(deps, fence.tenant)) throw staleError(fence);
        good.push(item);
        return {};
      });
      const sent = await inParts(good, (part) =>
        caller.call("store.appendChunks", {
          body: { batch: part.map(([fence, append]) => ({ fence, append: wireOf(append) })) },
        }),
      );
      const results = sent.flatMap((answer) => answer.results);
      let next = 0;
      return checked.map((one) => (one.ok ? results[next++]! : one));
    },
  };
}

const wireOf = ({ streams }: ChunkAppend) => ({
  streams: streams.map((stream) => ({ ...stream, chunks: [...stream.chunks] })),
});

export function remoteStreamReads(deps: RemoteContext): StreamReadOps {
  const { caller } = deps;
  return {
    async chunks(tenant, wanted) {
      if (!isOwn(deps, tenant)) return wanted.map(() => undefined);
      const parts = await inParts(wanted, (part) => caller.call("store.chunks", { body: { wanted: part } }));
      return parts.flatMap(({ pages }) =>
        pages.map((page): ChunkPage | undefined =>
          page === null ? undefined : { ...page, chunks: page.chunks.map(chunkOf) },
        ),
      );
    },
    async streams(tenant, id) {
      return isOwn(deps, tenant) ? (await caller.call("runs.streams", { params: { id } })).streams : [];
    },
    async streamParts(tenant, run, stream) {
      return isOwn(deps, tenant) ? (await caller.call("store.streamParts", { body: { run, stream } })).parts : [];
    },
    async streamAccess(token) {
      return (await caller.call("store.streamAccess", { body: { token } })).access;
    },
  };
}

/** The wire leaves out a value that is undefined. */
export const chunkOf = (chunk: Omit<Chunk, "value"> & { readonly value?: unknown; readonly rewound?: true }): Chunk => {
  const { offset, part, at } = chunk;
  return chunk.rewound === true ? { offset, part, at, rewound: true } : { offset, part, at, value: chunk.value };
};

export function remoteStreamTokens(deps: RemoteContext): StreamTokenOps {
  return {
    async streamToken(tenant, run, stream, ttlMs) {
      if (!isOwn(deps, tenant)) throw notFound("run", run);
      return deps.caller.call("runs.streamToken", { params: { id: run }, body: { stream, ttlMs } });
    },
  };
}

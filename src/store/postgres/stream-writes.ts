import type { Clock } from "../../base/clock.ts";
import type { Fence } from "../../model/fence.ts";
import type { Limits } from "../../model/limits.ts";
import type { WakeHint } from "../contract/store.ts";
import type { CheckedChunks, CheckedStream } from "../validate/streams.ts";
import { joinedTexts, nullableLiteral, numbersLiteral, textsLiteral } from "./arrays.ts";
import type { BatchedWrite } from "./write-batcher.ts";

/** The chunks of one run. */
export interface ChunksItem {
  readonly fence: Fence;
  readonly chunks: CheckedChunks;
}

interface ChunkRow extends Pick<CheckedStream, "name" | "from" | "retainMs"> {
  readonly fence: Fence;
  readonly offset: number;
  readonly part: number;
  /** Bytes of the item in this stream up to this chunk. */
  readonly size: number;
  readonly body: string;
}

function rowsOf({ fence, chunks }: ChunksItem): ChunkRow[] {
  return chunks.streams.flatMap(({ name, from, retainMs, chunks: some }) => {
    let size = 0;
    return some.map(({ part, body, bytes }, k) => {
      size += bytes;
      return {
        fence,
        name,
        from,
        ...(retainMs !== undefined && { retainMs }),
        offset: from + k,
        part,
        size,
        body: body!,
      };
    });
  });
}

/** Chunks of many runs. An item that rewinds a part does not come here. */
export const streamWrite = (
  limits: Limits,
  single: (item: ChunksItem) => Promise<object>,
): BatchedWrite<ChunksItem, object, "stream_many"> => ({
  sql: "stream_many",
  checkSql: "stream_many.check",
  journal: ({ fence }) => fence.journal,
  tenant: ({ fence }) => fence.tenant,
  bytes: ({ chunks }) => chunks.bytes,
  params: (batch) => {
    const rows = batch.flatMap(rowsOf);
    return {
      journals: numbersLiteral(batch.map(({ fence }) => fence.journal)),
      tenants: textsLiteral(batch.map(({ fence }) => fence.tenant)),
      tokens: numbersLiteral(batch.map(({ fence }) => fence.token)),
      nonces: numbersLiteral(batch.map(({ fence }) => fence.nonce)),
      opens: numbersLiteral(batch.map(({ chunks }) => chunks.streams.filter(({ from }) => from === 0).length)),
      runs: numbersLiteral(rows.map(({ fence }) => fence.journal)),
      writers: numbersLiteral(rows.map(({ fence }) => fence.token)),
      streams: textsLiteral(rows.map(({ name }) => name)),
      retains: nullableLiteral(rows.map(({ retainMs }) => retainMs)),
      afters: numbersLiteral(rows.map(({ from }) => from - 1)),
      offsets: numbersLiteral(rows.map(({ offset }) => offset)),
      parts: numbersLiteral(rows.map(({ part }) => part)),
      sizes: numbersLiteral(rows.map(({ size }) => size)),
      bodies: joinedTexts(rows.map(({ body }) => body)),
      max: limits.streams,
      maxBytes: limits.streamBytes,
    };
  },
  result: () => ({}),
  single,
});

/** Journals of one hint: a notification has at most 8000 bytes. */
const maxJournals = 200;

/** Hints of streams: those of one batch become one notification for each tenant. */
export class StreamHints {
  readonly #clock: Clock;
  readonly #send: (hint: WakeHint) => void;
  readonly #pending = new Map<string, Set<number>>();

  constructor(clock: Clock, send: (hint: WakeHint) => void) {
    this.#clock = clock;
    this.#send = send;
  }

  written({ tenant, journal }: Fence): void {
    const known = this.#pending.get(tenant);
    if (known !== undefined) return void known.add(journal);
    this.#pending.set(tenant, new Set([journal]));
    this.#clock.immediate(() => {
      const journals = [...(this.#pending.get(tenant) ?? [])];
      this.#pending.delete(tenant);
      for (let k = 0; k < journals.length; k += maxJournals)
        this.#send({ of: "stream", tenant, journals: journals.slice(k, k + maxJournals) });
    });
  }
}

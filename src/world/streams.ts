import type { Streamer } from "@workflow/world";
import { KeyedTurns } from "./keyed-turns.ts";
import { bad, numberOfCursor, pageRequest, textOf } from "./paging.ts";
import type { WorldDeps } from "./run-log.ts";
import { numberedChunks, StreamLog, streamNames, type Tail } from "./stream-log.ts";
import { StreamReader } from "./stream-reader.ts";

/** Chunks and bytes of one value; what is more becomes several values. A larger chunk has a value of its own. */
const maxEntryChunks = 256;
const maxEntryBytes = 512 * 1024;
/** Streams whose ends this process remembers. */
const maxTails = 1_000;

/** `world.streams`: chunks that steps write, for readers in any process, from any chunk on, now or later. */
export class WorldStreams implements Required<Streamer["streams"]> {
  readonly #deps: WorldDeps;
  readonly #turns = new KeyedTurns();
  /** Where this process believes that streams end, the longest unused first. The store decides. */
  readonly #tails = new Map<string, Tail>();

  constructor(deps: WorldDeps) {
    this.#deps = deps;
  }

  write(runId: string, name: string, chunk: string | Uint8Array): Promise<void> {
    return this.writeMulti(runId, name, [chunk]);
  }

  /** Chunks of one process are stored in the order of its calls. After the end of the stream they have no reader. */
  async writeMulti(runId: string, name: string, chunks: readonly (string | Uint8Array)[]): Promise<void> {
    const log = this.#log(runId, name);
    const bytes = chunks.map(bytesOf);
    await this.#turns.take(log.prefix, async () => {
      for (const some of inEntries(bytes)) await this.#append(log, some, false);
    });
  }

  async close(runId: string, name: string): Promise<void> {
    const log = this.#log(runId, name);
    await this.#turns.take(log.prefix, () => this.#append(log, [], true));
  }

  async get(runId: string, name: string, startIndex = 0): Promise<ReadableStream<Uint8Array>> {
    if (!Number.isSafeInteger(startIndex)) throw bad("startIndex", "startIndex is a whole number");
    const log = this.#log(runId, name);
    const from = startIndex < 0 ? Math.max(0, (await log.tail()).next + startIndex) : startIndex;
    const stop = new AbortController();
    const reader = new StreamReader(this.#deps, log, from, stop.signal);
    return new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const chunk = await reader.next();
          if (stop.signal.aborted) return;
          if (chunk === undefined) controller.close();
          else controller.enqueue(chunk);
        },
        cancel: () => stop.abort(),
      },
      { highWaterMark: 0 },
    );
  }

  list(runId: string): Promise<string[]> {
    return streamNames(this.#deps, textOf("runId", runId));
  }

  async getChunks(runId: string, name: string, options: { limit?: number; cursor?: string } = {}) {
    const { limit, cursor } = pageRequest(options, "asc");
    const from = numberOfCursor(cursor) ?? 0;
    const log = this.#log(runId, name);
    const { closed } = await log.tail();
    const start = await log.around(from);
    const page = await log.after(start?.key);
    const entries = start === undefined ? page.entries : [start, ...page.entries];
    const found = entries.flatMap(numberedChunks).filter(([number]) => number >= from);
    const hasMore = found.length > limit || page.more;
    const data = found.slice(0, limit).map(([index, chunk]) => ({ index, data: chunk }));
    const next = from + data.length;
    return { data, cursor: hasMore ? String(next) : null, hasMore, done: closed };
  }

  async getInfo(runId: string, name: string): Promise<{ tailIndex: number; done: boolean }> {
    const { next, closed } = await this.#log(runId, name).tail();
    return { tailIndex: next - 1, done: closed };
  }

  #log(runId: string, name: string): StreamLog {
    return new StreamLog(this.#deps, textOf("runId", runId), textOf("name", name));
  }

  async #append(log: StreamLog, chunks: readonly Uint8Array[], end: boolean): Promise<void> {
    for (let tail = this.#tails.get(log.prefix) ?? (await log.tail()); ; tail = await log.tail()) {
      const appended = tail.closed ? tail : await log.append(tail, chunks, end);
      if (appended === undefined) continue;
      this.#remember(log.prefix, appended);
      return;
    }
  }

  #remember(prefix: string, tail: Tail): void {
    this.#tails.delete(prefix);
    this.#tails.set(prefix, tail);
    for (const oldest of this.#tails.keys()) {
      if (this.#tails.size <= maxTails) return;
      this.#tails.delete(oldest);
    }
  }
}

function bytesOf(chunk: string | Uint8Array): Uint8Array {
  if (typeof chunk === "string") return new TextEncoder().encode(chunk);
  // A copy: the caller may reuse its buffer before the chunk is stored.
  if (chunk instanceof Uint8Array) return new Uint8Array(chunk);
  throw bad("chunk", "a chunk is text or bytes");
}

/** Puts chunks together into entries. */
function* inEntries(chunks: readonly Uint8Array[]): Generator<readonly Uint8Array[]> {
  let some: Uint8Array[] = [];
  let bytes = 0;
  for (const chunk of chunks) {
    if (some.length === maxEntryChunks || (some.length > 0 && bytes + chunk.byteLength > maxEntryBytes)) {
      yield some;
      some = [];
      bytes = 0;
    }
    some.push(chunk);
    bytes += chunk.byteLength;
  }
  if (some.length > 0) yield some;
}

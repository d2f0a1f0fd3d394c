import { decode, sizeOf } from "../../base/codec.ts";
import type { Lease } from "../../lease/lease.ts";
import { TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { ItemResult } from "../../model/lease.ts";
import type { StreamDefinition, StreamWriter } from "../../sdk/stream-types.ts";
import { isSealedStore } from "../../seal/sealed-store.ts";
import type { ChunkAppend, NewChunk, Store, StreamAppend, StreamView } from "../../store/contract/store.ts";
import { encodeChunk, streamTooLarge, tooManyStreams } from "../../store/validate/streams.ts";
import type { ChunkFlusher, ChunkSource } from "./chunk-flusher.ts";

export interface RunStreamsOptions {
  readonly store: Store;
  readonly tenant: string;
  readonly runId: string;
  readonly lease: Lease;
  readonly flusher: ChunkFlusher;
  /** The run was created by this process in this term: it has no streams yet. */
  readonly fresh: boolean;
  /** The chunks of this run cannot be stored: the drive is over. */
  readonly onLost: (error: unknown) => void;
}

/** A writer waits while more than this is not stored yet. */
const maxUnstoredBytes = 1024 * 1024;

/** One attempt of a body. */
interface Attempt {
  open: boolean;
  /** Its chunks that are not stored yet. */
  unstored: number;
  readonly waiting: (() => void)[];
  readonly writers: Map<string, StreamWriter<never>>;
}

interface QueuedChunk {
  readonly chunk: NewChunk;
  readonly bytes: number;
  readonly by: Attempt;
}

/** One stream of the run, as this term knows it. */
interface RunStream {
  readonly name: string;
  readonly retainMs: number | undefined;
  /** Resolves when the end of the stream is known. */
  loaded: Promise<void>;
  ready: boolean;
  /** The offset of the first chunk in the queue. */
  next: number;
  bytes: number;
  /** Bytes of each part with chunks in the store, or on their way there. */
  parts: Map<number, number>;
  /** Chunks that are not stored yet. */
  readonly queue: QueuedChunk[];
}

/**
 * What one drive streams. Chunks queue here until they are stored; nothing of it outlives the drive. The end of a stream
 * is read when the term first writes to it: a run that streams nothing reads nothing.
 */
export class RunStreams implements ChunkSource {
  readonly #options: RunStreamsOptions;
  readonly #streams = new Map<string, RunStream>();
  readonly #attempts = new Map<number, Attempt>();
  #stored: Promise<readonly StreamView[]> | undefined;
  #unstoredBytes = 0;
  #blocked: (() => void)[] = [];
  #inFlight: { readonly stream: RunStream; readonly count: number }[] = [];
  #ended: TapeError | undefined;

  constructor(options: RunStreamsOptions) {
    this.#options = options;
  }

  /** A writer for the attempt at this position. Its first chunk rewinds what earlier attempts have left. */
  writer<T>(pos: number, stream: StreamDefinition<T>): StreamWriter<T> {
    const by = this.#attemptAt(pos);
    const known = by.writers.get(stream.name) as StreamWriter<T> | undefined;
    if (known !== undefined) return known;
    const writer = this.#newWriter(pos, by, stream);
    by.writers.set(stream.name, writer as StreamWriter<never>);
    return writer;
  }

  /** In the store: with a codec a chunk takes more than its text. */
  #sizeOf(body: string): number {
    const { store } = this.#options;
    return isSealedStore(store) ? store.sealed.sizeOf(sizeOf(body)) : sizeOf(body);
  }

  #newWriter<T>(pos: number, by: Attempt, { name, retainMs }: StreamDefinition<T>): StreamWriter<T> {
    const { limits } = this.#options.store;
    const texts: string[] = [];
    let first = true;
    let textual = true;
    return {
      write: async (value) => {
        this.#assertOpen(by, name);
        const body = encodeChunk(value, limits);
        // What the caller changes later is not part of the chunk.
        const kept: unknown = typeof value === "object" && value !== null ? decode(body) : value;
        const stream = this.#streamOf(name, retainMs);
        if (!stream.ready) {
          await stream.loaded;
          this.#assertOpen(by, name);
        }
        if (first) this.#rewind(stream, pos, by);
        first = false;
        const bytes = this.#sizeOf(body);
        if (stream.bytes + bytes > limits.streamBytes) throw streamTooLarge(name, limits);
        if (typeof value === "string") texts.push(value);
        else textual = false;
        this.#push(stream, { chunk: { part: pos, value: kept }, bytes, by });
        if (this.#unstoredBytes > maxUnstoredBytes) await new Promise<void>((resolve) => this.#blocked.push(resolve));
      },
      text: () => {
        if (textual) return texts.join("");
        throw new TapeError("TAPE_BAD_INPUT", `stream ${name}: text() is for streams of text`, { stream: name });
      },
    };
  }

  /**
   * The body at this position is over: it writes no more. Resolves when its chunks are stored, or the drive is over;
   * undefined: nothing is left to store.
   */
  settle(pos: number): Promise<void> | undefined {
    const attempt = this.close(pos);
    if (attempt === undefined || attempt.unstored === 0 || this.#ended !== undefined) return undefined;
    this.#options.flusher.hurry(this);
    return new Promise((resolve) => attempt.waiting.push(resolve));
  }

  /** The attempt at this position is over; another one may follow. */
  close(pos: number): Attempt | undefined {
    const attempt = this.#attempts.get(pos);
    if (attempt === undefined) return undefined;
    attempt.open = false;
    this.#attempts.delete(pos);
    return attempt;
  }

  /** The drive is over. What is not stored yet will not be: the next drive repeats the body. */
  end(reason: TapeError): void {
    if (this.#ended !== undefined) return;
    this.#ended = reason;
    this.#options.flusher.remove(this);
    for (const resolve of this.#blocked.splice(0)) resolve();
    for (const { queue } of this.#streams.values())
      for (const { by } of queue) for (const resolve of by.waiting.splice(0)) resolve();
  }

  takeChunks(maxBytes: number): { readonly item: readonly [Fence, ChunkAppend]; readonly bytes: number } | undefined {
    const { lease } = this.#options;
    if (this.#ended !== undefined || this.#inFlight.length > 0 || lease.belief === "lost") return undefined;
    const streams: StreamAppend[] = [];
    let room = maxBytes;
    for (const stream of this.#streams.values()) {
      const chunks: NewChunk[] = [];
      for (const { chunk, bytes } of stream.queue) {
        if (room <= 0 || chunks.length >= maxChunks) break;
        chunks.push(chunk);
        room -= bytes;
      }
      if (chunks.length === 0) continue;
      const { name, retainMs, next: from } = stream;
      streams.push({ name, from, ...(retainMs !== undefined && { retainMs }), chunks });
      this.#inFlight.push({ stream, count: chunks.length });
    }
    return streams.length === 0 ? undefined : { item: [lease.fence, { streams }], bytes: maxBytes - room };
  }

  chunksLanded(result: ItemResult<object>): void {
    const { lease, flusher, onLost } = this.#options;
    const landed = this.#inFlight;
    this.#inFlight = [];
    if (this.#ended !== undefined) return;
    if (!result.ok) {
      onLost(result.error);
      return;
    }
    lease.moved(); // a body that streams does not hang
    for (const { stream, count } of landed) {
      stream.next += count;
      for (const { bytes, by } of stream.queue.splice(0, count)) {
        this.#unstoredBytes -= bytes;
        if (--by.unstored === 0) for (const resolve of by.waiting.splice(0)) resolve();
      }
    }
    if (this.#unstoredBytes <= maxUnstoredBytes) for (const resolve of this.#blocked.splice(0)) resolve();
    const left = [...this.#streams.values()].flatMap(({ queue }) => queue);
    if (left.some(({ by }) => by.waiting.length > 0)) flusher.hurry(this);
    else if (left.length > 0) flusher.add(this, this.#unstoredBytes);
  }

  #attemptAt(pos: number): Attempt {
    const known = this.#attempts.get(pos);
    if (known !== undefined) return known;
    const attempt: Attempt = { open: true, unstored: 0, waiting: [], writers: new Map() };
    this.#attempts.set(pos, attempt);
    return attempt;
  }

  #assertOpen({ open }: Attempt, stream: string): void {
    if (this.#ended !== undefined) throw this.#ended;
    if (open) return;
    throw new TapeError("TAPE_STREAM_CLOSED", `stream ${stream}: the body that wrote to it is over`, { stream });
  }

  #streamOf(name: string, retainMs: number | undefined): RunStream {
    const known = this.#streams.get(name);
    if (known !== undefined) return known;
    const ready = this.#options.fresh && this.#streams.size < this.#options.store.limits.streams;
    const stream: RunStream = {
      ...{ name, retainMs, loaded: Promise.resolve(), ready, next: 0, bytes: 0, parts: new Map(), queue: [] },
    };
    this.#streams.set(name, stream);
    if (!ready) stream.loaded = this.#load(stream);
    return stream;
  }

  /** Where the stream ends, and which parts it has: chunks of earlier terms. */
  async #load(stream: RunStream): Promise<void> {
    const { store, tenant, runId, fresh } = this.#options;
    const { name } = stream;
    try {
      this.#stored ??= fresh ? Promise.resolve([]) : store.read.streams(tenant, runId);
      const stored = await this.#stored;
      const view = stored.find((one) => one.name === name);
      const names = new Set([...stored.map((one) => one.name), ...this.#streams.keys()]);
      if (view === undefined && names.size > store.limits.streams) throw tooManyStreams(name, store.limits);
      if (view !== undefined) {
        const parts = await store.read.streamParts(tenant, runId, name);
        stream.parts = new Map(parts.map(({ part, bytes }) => [part, bytes]));
        stream.next = view.next;
        stream.bytes = view.bytes;
      }
      stream.ready = true;
    } catch (error) {
      this.#streams.delete(name); // the next write tries again
      this.#stored = undefined;
      throw error;
    }
  }

  #rewind(stream: RunStream, part: number, by: Attempt): void {
    const bytes = stream.parts.get(part);
    if (bytes === undefined) return;
    stream.bytes -= bytes;
    stream.parts.delete(part);
    this.#push(stream, { chunk: { part, rewound: true }, bytes: 0, by });
  }

  #push(stream: RunStream, queued: QueuedChunk): void {
    const { chunk, bytes, by } = queued;
    stream.queue.push(queued);
    stream.bytes += bytes;
    stream.parts.set(chunk.part, (stream.parts.get(chunk.part) ?? 0) + bytes);
    by.unstored++;
    this.#unstoredBytes += bytes;
    this.#options.flusher.add(this, bytes);
  }
}

/** Chunks of one run and stream in one call. */
const maxChunks = 2_000;

import type { Clock } from "../base/clock.ts";
import type { Duration } from "../base/duration.ts";
import { readable } from "../model/payloads.ts";
import { streamName } from "../sdk/stream.ts";
import type { StreamDefinition } from "../sdk/stream-types.ts";
import { assertKnownKeys, durationOrThrow } from "../sdk/validate.ts";
import type { Chunk, Store, StreamView } from "../store/contract/store.ts";
import { assertOffset, StreamTails } from "../store/stream-tails.ts";
import { type FollowRunOptions, type RunEvent, runEvents } from "./follow-run.ts";

/**
 * What a reader of a stream receives: a value, or the mark that an operation is attempted again. Then the reader drops
 * what it has received of that part.
 */
export type StreamChunk<T> =
  | { readonly offset: number; readonly part: number; readonly value: T }
  | { readonly offset: number; readonly rewound: number };

/** Where a reader starts: at this offset, to resume one more than the last that it has received. Default 0. */
export interface ReadStreamOptions {
  /** The offset at which the reader starts. Default 0. */
  readonly from?: number;
  readonly signal?: AbortSignal;
}

interface StreamsDeps {
  readonly store: Store;
  readonly tenant: string;
  readonly clock: Clock;
}

/**
 * The streams of runs, for readers.
 *
 * @example
 * for (const { name, bytes } of await app.streams.list("chat-7")) console.log(name, bytes);
 */
export class Streams {
  readonly #deps: StreamsDeps;
  #tails: StreamTails | undefined;

  constructor(deps: StreamsDeps) {
    this.#deps = deps;
  }

  /** The streams of a run: how far they are. */
  list(run: string): Promise<StreamView[]> {
    const { store, tenant } = this.#deps;
    return store.read.streams(tenant, run);
  }

  /**
   * A token that reads this stream of this run over HTTP, and nothing else: for a browser.
   *
   * @example
   * const token = await app.streams.token(run.id, tokens, { ttl: "1h" });
   */
  async token(
    run: string,
    stream: StreamDefinition<unknown> | string,
    options: { readonly ttl: Duration },
  ): Promise<string> {
    const { store, tenant } = this.#deps;
    const name = streamName("streams.token", stream);
    assertKnownKeys("streams.token", options, ["ttl"]);
    const ttlMs = Math.ceil(durationOrThrow("streams.token", "ttl", options.ttl, 1));
    return (await store.intake.streamToken(tenant, run, name, ttlMs)).token;
  }

  /** What `followRun` returns. */
  follow(run: string, options: FollowRunOptions = {}): AsyncGenerator<RunEvent> {
    return runEvents(this.#deps, run, options);
  }

  /** The chunks of a stream, as they are written; ends with the run. Needs no worker, also after the end. */
  async *read<T>(
    run: string,
    stream: StreamDefinition<T> | string,
    options: ReadStreamOptions = {},
  ): AsyncGenerator<StreamChunk<T>> {
    assertKnownKeys("stream", options, ["from", "signal"]);
    const { from = 0, signal = new AbortController().signal } = options;
    assertOffset("stream: from", from);
    const { store, clock, tenant } = this.#deps;
    this.#tails ??= new StreamTails(store, clock);
    const name = streamName("stream", stream);
    const pages = this.#tails.follow({ tenant, run, stream: name, from, signal });
    for await (const page of pages) for (const chunk of page) yield readChunk<T>(chunk);
    signal.throwIfAborted();
  }
}

export const readChunk = <T>(chunk: Chunk): StreamChunk<T> =>
  "rewound" in chunk
    ? { offset: chunk.offset, rewound: chunk.part }
    : { offset: chunk.offset, part: chunk.part, value: readable(chunk.value) as T };

import type { TapeError } from "../model/errors.ts";
import type { StreamDefinition } from "../sdk/stream-types.ts";
import type { RunView } from "../store/contract/store.ts";
import type { StartOptions } from "./options.ts";
import type { ResultWaiter } from "./result-waiter.ts";
import type { ReadStreamOptions, StreamChunk, Streams } from "./streams.ts";
import type { Talk } from "./talk.ts";

/** A handle to one run. */
export interface RunHandle<O> {
  /** The id of the run. */
  readonly id: string;
  /** Waits for the outcome; throws TAPE_RUN_FAILED for a run that did not complete. */
  result(options?: { readonly signal?: AbortSignal }): Promise<O>;
  /** The status of the run now. */
  status(): Promise<RunView["status"]>;
  /** The latest value that the run has published under this name. Needs no worker, also after the end. */
  published<T = unknown>(name: string): Promise<T | undefined>;
  /** The latest value, then each new one; fast changes may be skipped. Ends with the run. */
  watch<T = unknown>(name: string, options?: { readonly signal?: AbortSignal }): AsyncGenerator<T>;
  /**
   * The chunks of a stream from an offset on, as the run writes them; ends with the run.
   *
   * @example
   * for await (const chunk of run.stream(tokens, { from: 120 })) if ("value" in chunk) print(chunk.value);
   */
  stream<T>(stream: StreamDefinition<T> | string, options?: ReadStreamOptions): AsyncGenerator<StreamChunk<T>>;
}

/** What a handle needs of its app. */
export interface HandleDeps {
  readonly runs: { get(id: string): Promise<Pick<RunView, "status"> | undefined> };
  readonly results: ResultWaiter;
  readonly talk: Talk;
  readonly streams: Streams;
}

export function runHandle<O>({ runs, results, talk, streams }: HandleDeps, id: string, journal: number): RunHandle<O> {
  return {
    id,
    status: async () => (await runs.get(id))?.status ?? "RUNNABLE",
    result: (options = {}) => results.of<O>(id, journal, options.signal),
    published: (name) => talk.published(id, name),
    watch: (name, options = {}) => talk.watch(id, journal, name, options),
    stream: (stream, options = {}) => streams.read(id, stream, options),
  };
}

/** A run of `app.startAll`: its input, and options of its own. */
export type StartItem<I> = StartOptions & {
  /** The input of this run. */
  readonly input: I;
};
/** The handle of a started run, or the error that refused it. */
export type StartResult<O> =
  | { readonly ok: true; readonly run: RunHandle<O> }
  | { readonly ok: false; readonly error: TapeError };

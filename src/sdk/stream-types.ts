/** A stream of a run: values of type T that its bodies write while they run. */
export interface StreamDefinition<T> {
  readonly name: string;
  /** How long its chunks are kept after the end of the run; undefined: as long as the run. */
  readonly retainMs: number | undefined;
  /** Never set: it carries the type of the values. */
  readonly values?: T;
}

/** Writes to one stream for one attempt of a body. */
export interface StreamWriter<T> {
  /**
   * Sends the value to the readers, within 50 ms. It waits only while more than 1 MiB of this run is not stored yet.
   * Await it: where nothing is awaited, nothing slows a fast writer down.
   */
  write(value: T): Promise<void>;
  /** Everything that this attempt has written, for streams of text. */
  text(): string;
}

/** Opens a stream for the attempt that is running. */
export type OpenStream = <T>(stream: StreamDefinition<T>) => StreamWriter<T>;

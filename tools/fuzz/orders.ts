/** What the server under test says of its memory, in bytes after a collection. */
export interface Memory {
  readonly heap: number;
  /** Outside of the heap: buffers. */
  readonly outside: number;
  readonly rss: number;
}

/** The environment variable with the weaknesses that are planted in the server, as JSON. */
export const patchesVariable = "TAPE_FUZZ_PATCHES";

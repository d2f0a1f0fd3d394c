/** Memory of the server under test, in bytes after a collection. */
export interface Memory {
  readonly heap: number;
  /** Buffers outside of the heap. */
  readonly outside: number;
  readonly rss: number;
}

/** Environment variable with the weaknesses to plant in the server, as JSON. */
export const patchesVariable = "TAPE_FUZZ_PATCHES";

import type { Clock } from "../../base/clock.ts";
import type { Fence } from "../../model/fence.ts";
import type { ItemResult } from "../../model/lease.ts";
import type { ChunkAppend, Store } from "../../store/contract/store.ts";

/** A run with chunks to store. */
export interface ChunkSource {
  /** The next chunks of the run, at most about `maxBytes`, and their size; undefined: there are none now. */
  takeChunks(maxBytes: number): { readonly item: readonly [Fence, ChunkAppend]; readonly bytes: number } | undefined;
  /** The result of the chunks that were taken last. */
  chunksLanded(result: ItemResult<object>): void;
}

/** A reader sees a chunk after this time at the latest, plus a write and a read. */
const flushMs = 50;
/** With this many bytes it does not wait any longer. */
const flushBytes = 16 * 1024;
/** Bytes of one call, and of one run in it: a run that streams much does not delay the others. */
const callBytes = 1024 * 1024;
const runBytes = 256 * 1024;
/** Runs of one call. */
const callRuns = 500;

/**
 * Stores the chunks of all runs of a process together: 50 ms after the first one or with 16 KiB, or at once when a body
 * waits for its chunks. One call is in flight; meanwhile the next one collects.
 *
 *   idle ──add──▶ waiting ──50 ms | 16 KiB | urgent──▶ in flight ──▶ idle | waiting | in flight
 */
export class ChunkFlusher {
  readonly #store: Pick<Store, "fenced">;
  readonly #clock: Clock;
  /** In the order of their turns. */
  readonly #sources = new Set<ChunkSource>();
  #bytes = 0;
  #inFlight = false;
  #urgent = false;
  #cancelTimer: (() => void) | undefined;

  constructor(store: Pick<Store, "fenced">, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** The run has one more chunk. */
  add(source: ChunkSource, bytes: number): void {
    this.#sources.add(source);
    this.#bytes += bytes;
    this.#schedule();
  }

  /** A body waits for the chunks of this run. */
  hurry(source: ChunkSource): void {
    this.#sources.add(source);
    this.#urgent = true;
    this.#schedule();
  }

  remove(source: ChunkSource): void {
    this.#sources.delete(source);
  }

  #schedule(): void {
    if (this.#inFlight || this.#sources.size === 0) return;
    if (this.#urgent || this.#bytes >= flushBytes) {
      this.#cancelTimer?.();
      this.#cancelTimer = undefined;
      this.#inFlight = true;
      // Bodies that end in this turn of the event loop share the call.
      this.#clock.immediate(() => void this.#flush());
      return;
    }
    this.#cancelTimer ??= this.#clock.after(flushMs, () => {
      this.#cancelTimer = undefined;
      if (this.#inFlight) return;
      this.#inFlight = true;
      void this.#flush();
    });
  }

  async #flush(): Promise<void> {
    this.#urgent = false;
    this.#bytes = 0;
    const sources: ChunkSource[] = [];
    const batch: (readonly [Fence, ChunkAppend])[] = [];
    let bytes = 0;
    for (const source of [...this.#sources]) {
      if (batch.length >= callRuns || bytes >= callBytes) {
        this.#urgent = true;
        break;
      }
      this.#sources.delete(source); // and behind the others, if it has more
      const taken = source.takeChunks(runBytes);
      if (taken === undefined) continue;
      sources.push(source);
      batch.push(taken.item);
      bytes += taken.bytes;
    }
    let results: readonly ItemResult<object>[] = [];
    try {
      if (batch.length > 0) results = await this.#store.fenced.appendChunks(batch);
    } catch (error) {
      results = batch.map(() => ({ ok: false, error: error as never }));
    }
    this.#inFlight = false;
    for (const [k, source] of sources.entries()) source.chunksLanded(results[k]!);
    this.#schedule();
  }
}

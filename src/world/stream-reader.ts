import { type Follow, follow } from "../store/follow.ts";
import type { WorldDeps } from "./run-log.ts";
import { numberedChunks, type StreamEntry, type StreamLog } from "./stream-log.ts";

/** Reads a stream from one of its chunks on, as it is written. It waits for the store only while its reader waits for it. */
export class StreamReader {
  readonly #deps: WorldDeps;
  readonly #log: StreamLog;
  readonly #from: number;
  readonly #signal: AbortSignal;
  readonly #ready: Uint8Array[] = [];
  #isPlaced = false;
  #after: string | undefined;
  #ended = false;

  constructor(deps: WorldDeps, log: StreamLog, from: number, signal: AbortSignal) {
    this.#deps = deps;
    this.#log = log;
    this.#from = from;
    this.#signal = signal;
  }

  /** The next chunk; undefined: the stream has ended, or the signal is aborted. */
  async next(): Promise<Uint8Array | undefined> {
    if (!this.#isPlaced) {
      const start = await this.#log.around(this.#from);
      if (start !== undefined) this.#add([start]);
      this.#isPlaced = true;
    }
    while (this.#ready.length === 0 && !this.#ended && !this.#signal.aborted) await this.#more();
    return this.#ready.shift();
  }

  /** Waits until there is a further entry. */
  async #more(): Promise<void> {
    const { store, clock, tenant } = this.#deps;
    const { prefix } = this.#log;
    const concerns: Follow<unknown>["concerns"] = (wake) =>
      wake.of === "any" || (wake.of === "value" && wake.tenant === tenant && wake.key.startsWith(prefix));
    const page = async () => (await this.#log.after(this.#after)).entries;
    for await (const entries of follow({ store, clock, signal: this.#signal, page, concerns })) {
      this.#add(entries);
      return;
    }
  }

  /** Empty chunks count, and are not passed on. */
  #add(entries: readonly StreamEntry[]): void {
    const chunks = entries.flatMap(numberedChunks);
    for (const [number, chunk] of chunks) if (number >= this.#from && chunk.byteLength > 0) this.#ready.push(chunk);
    this.#after = entries.at(-1)?.key ?? this.#after;
    this.#ended = entries.at(-1)?.end === true;
  }
}

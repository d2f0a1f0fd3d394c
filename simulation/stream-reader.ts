import type { Chunk } from "../src/store/contract/store.ts";
import { streamer } from "./plan-streams.ts";
import { type Stage, tenant } from "./stage.ts";
import { tokens } from "./streaming.ts";

/** The pause between two reads. */
const readEveryMs = 350;

/** Follows the stream by its offsets while faults happen, as a client that polls. */
export class StreamReader {
  /** Everything that it has received, in order. */
  readonly seen: Chunk[] = [];
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async run(): Promise<void> {
    const { time, plan, shared } = this.#stage;
    if (!plan.runs.some(({ id }) => id === streamer)) return;
    for (; time.now < plan.healAtMs; await time.sleep(readEveryMs)) if (!shared.away) await this.#read();
  }

  /** Reads the rest, and once more from the beginning, as a reader that comes late. */
  async rest(): Promise<{ readonly seen: readonly Chunk[]; readonly late: readonly Chunk[] }> {
    await this.#read();
    const { shared } = this.#stage;
    const [page] = await shared.store.read.chunks(tenant, [{ run: streamer, stream: tokens.name, from: 0 }]);
    return { seen: this.seen, late: page?.chunks ?? [] };
  }

  async #read(): Promise<void> {
    const from = (this.seen.at(-1)?.offset ?? -1) + 1;
    const { shared } = this.#stage;
    const [page] = await shared.store.read.chunks(tenant, [{ run: streamer, stream: tokens.name, from }]);
    this.seen.push(...(page?.chunks ?? []));
  }
}

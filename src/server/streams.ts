import type { Clock } from "../base/clock.ts";
import { heartbeatLine } from "../protocol/transport.ts";

export { follow } from "../store/follow.ts";

/** Proxies and clients close silent connections after 30 to 60 s. */
const heartbeatMs = 15_000;
/** Records per page, and the maximum that a slow reader keeps in memory. */
export const streamPage = 100;
export interface Lines {
  readonly stop: AbortController;
  readonly clock: Clock;
  /** Resolves when the next page may be written; undefined: at once. */
  readonly turn: () => Promise<void> | undefined;
}

/** Pages as lines of JSON, with an empty line as heartbeat. */
export async function* linesOf<T>(
  pages: AsyncIterable<readonly T[]>,
  write: (item: T) => string,
  { stop, clock, turn }: Lines,
): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  const iterator = pages[Symbol.asyncIterator]();
  try {
    let next = iterator.next();
    for (;;) {
      const pause = new AbortController();
      const beat = clock.sleep(heartbeatMs, AbortSignal.any([stop.signal, pause.signal])).then(() => "beat" as const);
      const first = await Promise.race([next, beat]);
      pause.abort("page"); // with a reason: without one Node creates an exception and its stack
      if (first === "beat") {
        if (stop.signal.aborted) return;
        yield encoder.encode(`${heartbeatLine}\n`);
        continue;
      }
      if (first.done === true) return;
      await turn();
      yield encoder.encode(first.value.map((item) => `${write(item)}\n`).join(""));
      next = iterator.next();
    }
  } finally {
    stop.abort("ended");
    // The signal ends the iterator; a page that still arrives is dropped.
    void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}

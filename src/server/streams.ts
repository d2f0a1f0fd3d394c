import type { Clock } from "../base/clock.ts";

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

/** How the items of a stream, its heartbeats and its end are written. */
export interface StreamFormat {
  readonly item: (item: unknown) => string;
  readonly beat: string;
  /** After the last item, if the source has ended. */
  readonly end: string;
}

/** Pages as text, with a heartbeat where nothing comes. */
export async function* linesOf(
  pages: AsyncIterable<readonly unknown[]>,
  { item, beat: heartbeat, end }: StreamFormat,
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
        yield encoder.encode(heartbeat);
        continue;
      }
      if (first.done === true) {
        if (end !== "" && !stop.signal.aborted) yield encoder.encode(end);
        return;
      }
      await turn();
      yield encoder.encode(first.value.map(item).join(""));
      next = iterator.next();
    }
  } finally {
    stop.abort("ended");
    // The signal ends the iterator; a page that still arrives is dropped.
    void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}

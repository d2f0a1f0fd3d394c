import type { Clock } from "../base/clock.ts";
import { heartbeatLine } from "../protocol/transport.ts";
import type { Store, WakeHint } from "../store/contract/store.ts";

/** Proxies and clients close silent connections after 30 to 60 s. */
const heartbeatMs = 15_000;
/** Records per page, and the maximum that a slow reader keeps in memory. */
export const streamPage = 100;
/** Wake hints may be lost: followers poll at least this often. */
const pollMs = 1_000;

export interface Follow<T> {
  readonly store: Pick<Store, "onWake">;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Reads what is new; "end": there will be no more. */
  readonly page: () => Promise<readonly T[] | "end">;
  /** Whether this hint may concern the stream. */
  readonly concerns: (wake: WakeHint) => boolean;
}

/** Yields new pages and waits for a wake hint in between; ends with the signal. */
export async function* follow<T>({ store, clock, signal, page, concerns }: Follow<T>): AsyncGenerator<readonly T[]> {
  let pending = false;
  let wakeUp = (): void => {};
  const unsubscribe = store.onWake((wake) => {
    if (!concerns(wake)) return;
    pending = true;
    wakeUp();
  });
  try {
    while (!signal.aborted) {
      pending = false;
      const found = await page();
      if (found === "end") return;
      if (found.length > 0) yield found;
      if (found.length > 0 || pending || signal.aborted) continue;
      if ("more" in found && found.more === true) {
        await clock.sleep(0, signal); // nothing for this caller in the stretch: other calls get a turn first
        continue;
      }
      const pause = new AbortController();
      wakeUp = () => pause.abort("hint");
      await clock.sleep(pollMs, AbortSignal.any([signal, pause.signal]));
    }
  } finally {
    unsubscribe();
  }
}

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

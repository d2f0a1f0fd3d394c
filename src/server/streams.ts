import type { Clock } from "../base/clock.ts";
import { heartbeatLine } from "../protocol/transport.ts";
import type { Store, WakeHint } from "../store/contract/store.ts";

/** Proxies and clients give up on silent connections after a minute or half of one. */
const heartbeatMs = 15_000;
/** Records of one look: a slow reader holds at most so many in memory. */
export const streamPage = 100;
/** Hints may be lost: followers look at least so often. */
const pollMs = 1_000;

export interface Follow<T> {
  readonly store: Pick<Store, "onWake">;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** What is new; "end": there will never be more. */
  readonly page: () => Promise<readonly T[] | "end">;
  /** Whether this hint may be about it. */
  readonly concerns: (wake: WakeHint) => boolean;
}

/** Looks, hands out what is new, and rests until a hint comes; ends with the signal. */
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
        await clock.sleep(0, signal); // nothing of ours in this stretch: a turn for everybody else, then the next
        continue;
      }
      const rest = new AbortController();
      wakeUp = () => rest.abort("news");
      await clock.sleep(pollMs, AbortSignal.any([signal, rest.signal]));
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

/** Pages as lines of JSON, and an empty line when there was nothing to say for a while. */
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
      const rest = new AbortController();
      const beat = clock.sleep(heartbeatMs, AbortSignal.any([stop.signal, rest.signal])).then(() => "beat" as const);
      const first = await Promise.race([next, beat]);
      rest.abort("news"); // a reason of one's own: without one an exception is made, with its stack
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
    stop.abort("over");
    // It ends by the signal; what it was waiting for may still come, and nobody cares any more.
    void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}

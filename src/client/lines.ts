import type { Clock } from "../base/clock.ts";
import { heartbeatLine } from "../protocol/transport.ts";

/** A live stream sends a heartbeat every 15 s. One that is silent for three times as long is dead. */
const silentMs = 45_000;
/** Longer than any record; an endless line must not fill the memory. */
const maxChars = 64 * 1024 * 1024;

/** Yields the JSON of each line. Ends with the stream or when the signal aborts; throws when the stream is dead. */
export async function* linesOf(
  body: AsyncIterable<Uint8Array>,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<unknown> {
  const text = new TextDecoder("utf-8", { fatal: true });
  const chunks = body[Symbol.asyncIterator]();
  let rest = "";
  try {
    for (;;) {
      const chunk = await within(chunks.next(), clock, signal);
      if (chunk === undefined || chunk.done === true) return;
      const lines = (rest + text.decode(chunk.value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > maxChars) throw new Error(`a line is longer than ${maxChars} letters`);
      for (const line of lines) if (line !== heartbeatLine) yield JSON.parse(line);
    }
  } finally {
    // Not awaited, because a stream that hangs would never end.
    void Promise.resolve(chunks.return?.()).catch(() => {});
  }
}

/** undefined: the signal has aborted. */
function within<T>(work: Promise<T>, clock: Clock, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return resolve(undefined);
    const done = (settle: () => void): void => {
      cancel();
      signal.removeEventListener("abort", stop);
      settle();
    };
    const stop = (): void => done(() => resolve(undefined));
    const cancel = clock.after(silentMs, () => done(() => reject(new Error(`nothing received for ${silentMs} ms`))));
    signal.addEventListener("abort", stop, { once: true });
    work.then(
      (value) => done(() => resolve(value)),
      (error: unknown) => done(() => (signal.aborted ? resolve(undefined) : reject(error))),
    );
  });
}

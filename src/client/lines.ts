import type { Clock } from "../base/clock.ts";
import { heartbeatLine } from "../protocol/transport.ts";

/** A living stream says so every 15 s: one that is silent for three times that is dead, whatever its socket says. */
const silentMs = 45_000;
/** Longer than a record may be: a line without end must not fill the memory. */
const maxChars = 64 * 1024 * 1024;

/** The JSON of each line; ends with the stream, when the signal aborts, or by throwing when nothing comes any more. */
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
    // Not awaited: a stream that hangs does not end either.
    void Promise.resolve(chunks.return?.()).catch(() => {});
  }
}

/** undefined: the signal has aborted. */
function within<T>(work: Promise<T>, clock: Clock, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return resolve(undefined);
    const done = (tell: () => void): void => {
      cancel();
      signal.removeEventListener("abort", stop);
      tell();
    };
    const stop = (): void => done(() => resolve(undefined));
    const cancel = clock.after(silentMs, () => done(() => reject(new Error(`nothing heard for ${silentMs} ms`))));
    signal.addEventListener("abort", stop, { once: true });
    work.then(
      (value) => done(() => resolve(value)),
      (error: unknown) => done(() => (signal.aborted ? resolve(undefined) : reject(error))),
    );
  });
}

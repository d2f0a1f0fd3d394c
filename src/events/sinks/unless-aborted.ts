/**
 * Calls `send`, and settles when the signal aborts, even if the client keeps waiting. What it still sends is a repeat,
 * which a receiver of events has to expect.
 */
export async function unlessAborted<T>(signal: AbortSignal, send: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const over = Promise.withResolvers<never>();
  const onAbort = (): void => over.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([send(), over.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Polls until there is a result. */
export async function until<T>(poll: () => Promise<T | undefined>, everyMs = 20): Promise<T> {
  for (;;) {
    const found = await poll();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

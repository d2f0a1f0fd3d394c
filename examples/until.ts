/** Looks again and again until there is something to see. */
export async function until<T>(look: () => Promise<T | undefined>, everyMs = 20): Promise<T> {
  for (;;) {
    const seen = await look();
    if (seen !== undefined) return seen;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

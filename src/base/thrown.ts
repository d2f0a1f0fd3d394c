/** User code may throw anything: also what cannot be looked at without throwing again. */

const unshowable = "something was thrown that cannot be shown";

/** What was thrown, in one line; never throws. */
export function describeThrown(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown);
  } catch {
    return unshowable;
  }
}

/** What was thrown, if it can be tested and shown; else an error that says that it cannot. */
export function tameThrown(thrown: unknown): unknown {
  try {
    void (thrown instanceof Error);
    void String(thrown);
    return thrown;
  } catch {
    return new Error(unshowable);
  }
}

/** User code may throw anything, including values that throw again when they are inspected. */

const unshowable = "a value was thrown that cannot be shown";

/** Describes a thrown value in one line; never throws. */
export function describeThrown(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown);
  } catch {
    return unshowable;
  }
}

/** The thrown value if it can be inspected, otherwise an error that explains that it cannot. */
export function tameThrown(thrown: unknown): unknown {
  try {
    void (thrown instanceof Error);
    void String(thrown);
    return thrown;
  } catch {
    return new Error(unshowable);
  }
}

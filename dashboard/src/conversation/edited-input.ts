/** The input with a text replaced wherever a field is exactly that text; undefined: no field is. */
export function withText(input: unknown, before: string, after: string): unknown {
  let found = false;
  const replaced = (value: unknown): unknown => {
    if (value === before) {
      found = true;
      return after;
    }
    if (Array.isArray(value)) return value.map(replaced);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, replaced(part)]));
  };
  const result = replaced(input);
  return found ? result : undefined;
}

type MayBeUndefined<T> = { [K in keyof T]-?: undefined extends T[K] ? K : never }[keyof T];

/** {@link defined}: a field that may be undefined is optional instead. */
export type Defined<T> = Omit<T, MayBeUndefined<T>> & { [K in MayBeUndefined<T>]?: Exclude<T[K], undefined> };

/**
 * The fields that have a value. Not for code that runs at each step: there a spread of a condition is faster.
 *
 * @example `{ workflow, ...defined({ version, labels }) }`
 */
export function defined<T extends object>(fields: T): Defined<T> {
  const kept: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields)) if (value !== undefined) kept[key] = value;
  return kept as Defined<T>;
}

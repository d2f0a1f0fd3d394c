export type Awaitable<T> = T | Promise<T>;

/** `await` without a promise where there is none: a transaction on SQLite cannot wait. */
export function chain<T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** The same for many values, one after the other as long as none is a promise. */
export function chainAll<T>(values: readonly Awaitable<T>[]): Awaitable<T[]> {
  return values.some((value) => value instanceof Promise) ? Promise.all(values) : (values as T[]);
}

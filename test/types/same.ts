/** Compiles only if both types are identical, including `any` and `never`. */
export function same<A>() {
  return <B>(..._: Same<A, B> extends true ? [] : [error: "the types differ", A, B]): void => {};
}

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

export const inferred = <T>(_value: T) => same<T>();

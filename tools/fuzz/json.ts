/** A piece of JSON text that `JSON.stringify` would not write: `1e999`, a lone surrogate, brackets without end. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** An object by its pairs: a name may come twice, or be one that an object literal cannot hold. */
export class Pairs {
  readonly pairs: readonly (readonly [string, unknown])[];

  constructor(pairs: readonly (readonly [string, unknown])[]) {
    this.pairs = pairs;
  }
}

export function jsonText(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map(jsonText).join(",")}]`;
  const pairs = pairsOf(value);
  if (pairs === undefined) return JSON.stringify(value) ?? "null";
  return `{${pairs.map(([name, one]) => `${JSON.stringify(name)}:${jsonText(one)}`).join(",")}}`;
}

export function pairsOf(value: unknown): readonly (readonly [string, unknown])[] | undefined {
  if (value instanceof Pairs) return value.pairs;
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof RawJson) return undefined;
  return Object.entries(value).filter(([, one]) => one !== undefined);
}

export type Path = readonly (string | number)[];

/** A copy with another value at this place; `undefined` takes the place away. */
export function withAt(value: unknown, [step, ...rest]: Path, put: unknown): unknown {
  if (step === undefined) return put;
  if (Array.isArray(value)) {
    return value.flatMap((one, k) => {
      if (k !== step) return [one];
      const next = withAt(one, rest, put);
      return next === undefined ? [] : [next];
    });
  }
  const pairs = pairsOf(value);
  if (pairs === undefined) return value;
  return new Pairs(
    pairs.flatMap(([name, one]) => {
      if (name !== step) return [[name, one] as const];
      const next = withAt(one, rest, put);
      return next === undefined ? [] : [[name, next] as const];
    }),
  );
}

/** JSON text that `JSON.stringify` would not write: `1e999`, a lone surrogate, unclosed brackets. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** An object as pairs: a name may be repeated, or be one that an object literal cannot hold. */
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
  return `{${pairs.map(([name, item]) => `${JSON.stringify(name)}:${jsonText(item)}`).join(",")}}`;
}

export function pairsOf(value: unknown): readonly (readonly [string, unknown])[] | undefined {
  if (value instanceof Pairs) return value.pairs;
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof RawJson) return undefined;
  return Object.entries(value).filter(([, item]) => item !== undefined);
}

export type Path = readonly (string | number)[];

/** A copy with another value at this path; `undefined` removes it. */
export function withAt(value: unknown, [step, ...rest]: Path, replacement: unknown): unknown {
  if (step === undefined) return replacement;
  if (Array.isArray(value)) {
    return value.flatMap((item, k) => {
      if (k !== step) return [item];
      const next = withAt(item, rest, replacement);
      return next === undefined ? [] : [next];
    });
  }
  const pairs = pairsOf(value);
  if (pairs === undefined) return value;
  return new Pairs(
    pairs.flatMap(([name, item]) => {
      if (name !== step) return [[name, item] as const];
      const next = withAt(item, rest, replacement);
      return next === undefined ? [] : [[name, next] as const];
    }),
  );
}

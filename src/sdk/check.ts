import { suggest } from "../base/suggest.ts";
import { TapeError } from "../model/errors.ts";

/** Checks of what authors write, made where it is defined: a mistake is told before anything can run. */

/** A name that can be shown and stored. */
export function named(what: string, name: unknown): asserts name is string {
  if (typeof name === "string" && name.length > 0) return;
  throw new TapeError("TAPE_BAD_INPUT", `${what} needs a name`, { name });
}

/** A mistyped option would silently not apply. */
export function knownKeys(whose: string, options: object, known: readonly string[]): void {
  if (typeof options !== "object" || options === null) {
    throw new TapeError("TAPE_BAD_INPUT", `${whose}: the options are not an object`);
  }
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue;
    const near = suggest(key, known);
    const hint = near === undefined ? "" : `; did you mean ${near}?`;
    throw new TapeError("TAPE_BAD_INPUT", `${whose} has no option ${key}${hint}`, { field: key });
  }
}

export function choice<T extends string>(whose: string, field: string, value: T, known: readonly T[]): void {
  if (known.includes(value)) return;
  throw new TapeError("TAPE_BAD_INPUT", `${whose}: ${field} is ${known.join(" or ")}, not ${String(value)}`, { field });
}

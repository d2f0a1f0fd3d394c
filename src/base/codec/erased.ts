import { inspect } from "node:util";

/** Found by this symbol, not by `instanceof`: two copies of this package may meet in one process. */
const mark = Symbol.for("durable-tape.erased");

/** What people read in place of a payload, and what text becomes. */
export const erasedWord = "[erased]";

/** Stands for a payload that an operator has erased. A program gets one in its place. */
export class ErasedPayload {
  get [mark](): true {
    return true;
  }

  toJSON(): string {
    return erasedWord;
  }

  toString(): string {
    return erasedWord;
  }

  [inspect.custom](): string {
    return erasedWord;
  }
}

export function isErased(value: unknown): value is ErasedPayload {
  return typeof value === "object" && value !== null && (value as { [mark]?: unknown })[mark] === true;
}

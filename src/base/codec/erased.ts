import { inspect } from "node:util";

/** Found by this symbol, not by `instanceof`: two copies of this package may meet in one process. */
const mark = Symbol.for("durable-tape.erased");

/** What people read in place of a payload, and what text becomes. */
export const erasedWord = "[erased]";

/**
 * Stands for a payload that an operator has erased. A program gets one in its place.
 *
 * @example
 * const result: unknown = await run.result();
 * if (result instanceof ErasedPayload) console.log("its payloads were erased");
 */
export class ErasedPayload {
  /** What `isErased` checks. */
  get [mark](): true {
    return true;
  }

  /** JSON has the text `[erased]`. */
  toJSON(): string {
    return erasedWord;
  }

  /** The text `[erased]`. */
  toString(): string {
    return erasedWord;
  }

  /** What a console prints. */
  [inspect.custom](): string {
    return erasedWord;
  }
}

/**
 * Whether a value stands for an erased payload.
 *
 * @example
 * const result = await run.result();
 * if (isErased(result)) console.log("its payloads were erased");
 */
export function isErased(value: unknown): value is ErasedPayload {
  return typeof value === "object" && value !== null && (value as { [mark]?: unknown })[mark] === true;
}

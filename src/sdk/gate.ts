import { TapeError } from "../model/errors.ts";
import type { Schema } from "./schema.ts";

/** A durable wait for a signal of this name; T is what the signal carries. */
export interface GateDefinition<T> {
  readonly name: string;
  readonly schema: Schema<T> | undefined;
}

/**
 * @example
 * const cfo = gate<{ approved: boolean }>("cfo");
 */
export function gate<T = unknown>(name: string, options: { readonly schema?: Schema<T> } = {}): GateDefinition<T> {
  if (typeof name !== "string" || name.length === 0) throw new TapeError("TAPE_BAD_INPUT", "a gate needs a name");
  return { name, schema: options.schema };
}

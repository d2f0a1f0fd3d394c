import { knownKeys, named } from "./check.ts";
import { type Schema, schemaOf } from "./schema.ts";

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
  named("a gate", name);
  knownKeys(`gate ${name}`, options, ["schema"], {
    timeout: "a time-out belongs to the wait: tape.gate(gate, { timeout })",
  });
  schemaOf(`gate ${name}`, "schema", options.schema);
  return { name, schema: options.schema };
}

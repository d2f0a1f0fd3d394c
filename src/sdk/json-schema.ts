import type { GateDefinition } from "./gate.ts";
import type { Schema } from "./schema.ts";
import type { Runner } from "./workflow.ts";

/** A description that people fill in as a form is short; a longer one is left out, and they write JSON. */
const maxChars = 4_000;
/** Process reports are short: together, the schemas of all gates take no more. */
const maxReportChars = 12_000;

const known = new WeakMap<Schema, string | undefined>();

/** JSON Schema of the values that a schema accepts, if its library can describe them (Standard JSON Schema). */
function jsonSchemaOf(schema: Schema): string | undefined {
  if (known.has(schema)) return known.get(schema);
  let text: string | undefined;
  try {
    text = JSON.stringify(schema["~standard"].jsonSchema?.input({ target: "draft-2020-12" }));
  } catch {
    // A library throws where JSON Schema has no words for a schema, such as a transformation. It still validates.
  }
  const kept = text !== undefined && text.length <= maxChars ? text : undefined;
  known.set(schema, kept);
  return kept;
}

/** What the gates of a runner accept, by name: those that are registered, and those that its runs have opened. */
export function gateSchemas(runner: Runner): Readonly<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  let chars = 0;
  for (const gates of [runner.gates, runner.openedGates]) {
    for (const [name, { schema }] of gates ?? new Map<string, GateDefinition<unknown>>()) {
      const text = schema === undefined || Object.hasOwn(found, name) ? undefined : jsonSchemaOf(schema);
      if (text === undefined || chars + text.length > maxReportChars) continue;
      chars += text.length;
      Object.defineProperty(found, name, { value: JSON.parse(text), enumerable: true });
    }
  }
  return found;
}

import type { z } from "zod";
import { type RecordKind, recordSchemas } from "../model/records.ts";

/**
 * Records without the values of users: inputs, results, errors, payloads. The schemas decide: a field that may hold
 * anything holds a value. So a field that is added later is left out, too.
 */

/** Text that a model has written, although its schema is that of a text. */
const freeText: ReadonlySet<string> = new Set(["decision.made.rationale"]);
/** `path`: the kind, and the names of the fields down to this one. */
export const isFreeText = (path: string): boolean => freeText.has(path);

/** The fields of an object: left out (null), or with fields to leave out. Others are kept. */
type Fields = ReadonlyMap<string, Fields | null>;

const fieldsByKind = new Map<RecordKind, Fields>();

export function factsOf(kind: RecordKind, data: unknown): unknown {
  let fields = fieldsByKind.get(kind);
  if (fields === undefined) {
    fields = fieldsOf(recordSchemas[kind], kind);
    fieldsByKind.set(kind, fields);
  }
  return without(fields, data);
}

function without(fields: Fields, data: unknown): unknown {
  if (fields.size === 0 || typeof data !== "object" || data === null) return data;
  if (Array.isArray(data)) return data.map((item) => without(fields, item));
  const facts: Record<string, unknown> = {};
  for (const name in data) {
    const inner = fields.get(name);
    const value = (data as Record<string, unknown>)[name];
    if (inner === undefined) facts[name] = value;
    else if (inner !== null) facts[name] = without(inner, value);
  }
  return facts;
}

interface Definition {
  readonly type: string;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly innerType?: z.ZodType;
  readonly element?: z.ZodType;
}

/** The schema inside of optional ones and of lists. */
function plainOf(schema: z.ZodType): Definition {
  let found = definitionOf(schema);
  for (let inner = found.innerType ?? found.element; inner !== undefined; inner = found.innerType ?? found.element)
    found = definitionOf(inner);
  return found;
}

const definitionOf = (schema: z.ZodType): Definition => (schema as unknown as { def: Definition }).def;

/** Whether a field of this schema may hold a value of a user. */
export const holdsValue = (schema: z.ZodType): boolean => plainOf(schema).type === "unknown";

function fieldsOf(schema: z.ZodType, path: string): Fields {
  const fields = new Map<string, Fields | null>();
  for (const [name, field] of Object.entries(plainOf(schema).shape ?? {})) {
    const own = `${path}.${name}`;
    if (holdsValue(field) || isFreeText(own)) fields.set(name, null);
    else {
      const inner = fieldsOf(field, own);
      if (inner.size > 0) fields.set(name, inner);
    }
  }
  return fields;
}

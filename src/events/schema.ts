import { z } from "zod";
import { type RecordKind, recordKinds, recordSchemas } from "../model/records.ts";
import { restoredKind, schemaUriOf } from "./event.ts";
import { holdsValue, isFreeText } from "./facts.ts";

type JsonSchema = Record<string, unknown>;

/** The kinds of events. `store.restored` is announced by the fan-out, whatever the journal of the store has. */
export const eventKinds: readonly string[] = [...new Set<string>([...recordKinds, restoredKind])];

const text = z.string();
const run = z.looseObject({
  ...{ id: text, workflow: text, version: text.nullable(), labels: z.record(text, text) },
  ...{ root: text, parent: text.nullable() },
});
const item = z.looseObject({ pos: z.int(), sub: z.int(), name: text.nullable() });
const restored = z.looseObject({ storeEpoch: z.int().nonnegative() });
/** What the codec writes for a record with values that JSON cannot hold. */
const envelope = z.looseObject({ $codec: z.unknown() });

/**
 * The JSON Schema of `data` in events of this kind, whatever the sink's `payload`: a value of a user may be missing, and
 * so may all data of the record. Fields that a later version adds are accepted, so that receivers need not be changed
 * first.
 */
export function eventJsonSchema(kind: string): JsonSchema {
  const title = `data of dev.tape.${kind}`;
  const head = { $schema: "https://json-schema.org/draft/2020-12/schema", $id: schemaUriOf(kind), title };
  const { $schema: _, ...body } = kind === restoredKind ? jsonOf(restored) : jsonOf(dataOf(kind as RecordKind));
  return { ...head, ...open(body) };
}

/** The schemas of all kinds in one document, each with the `$id` that `dataschema` names. */
export const eventsJsonSchema = (): JsonSchema => ({
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "data of the events of Tape, by kind",
  $defs: Object.fromEntries(eventKinds.map((kind) => [kind, eventJsonSchema(kind)])),
});

function dataOf(kind: RecordKind): z.ZodType {
  const record = z.looseObject({
    ...{ kind: z.literal(kind), seq: z.int().positive(), inbox: z.boolean(), at: z.int(), token: text.regex(/^\d+$/) },
    data: z.union([withOptionalValues(recordSchemas[kind], kind), envelope]).optional(),
  });
  return z.looseObject({ run: run.optional(), item: item.optional(), lease: text.optional(), record });
}

interface Definition {
  readonly type: string;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly innerType?: z.ZodType;
  readonly element?: z.ZodType;
}

/** The same schema, in which everything that `payload: "facts"` leaves out may be missing. */
function withOptionalValues(schema: z.ZodType, path: string): z.ZodType {
  const { type, shape, innerType, element } = (schema as unknown as { def: Definition }).def;
  if (type === "optional") return withOptionalValues(innerType!, path).optional();
  if (type === "nullable") return withOptionalValues(innerType!, path).nullable();
  if (type === "array") return z.array(withOptionalValues(element!, path));
  if (shape === undefined) return schema;
  const fields = Object.entries(shape).map(([name, field]): [string, z.ZodType] => {
    const own = `${path}.${name}`;
    return [name, holdsValue(field) || isFreeText(own) ? z.unknown().optional() : withOptionalValues(field, own)];
  });
  return z.looseObject(Object.fromEntries(fields));
}

const jsonOf = (schema: z.ZodType): JsonSchema =>
  z.toJSONSchema(schema, { io: "input", target: "draft-2020-12" }) as JsonSchema;

/** Without bans on further fields, at any depth. */
function open(node: unknown): JsonSchema {
  const visited = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visited);
    if (typeof value !== "object" || value === null) return value;
    const kept = Object.entries(value).filter(([key, inner]) => key !== "additionalProperties" || inner !== false);
    return Object.fromEntries(kept.map(([key, inner]) => [key, visited(inner)]));
  };
  return visited(node) as JsonSchema;
}

import { describe, expect, it } from "vitest";
import { z } from "zod";
import { payloadFields, plainFields, textFields } from "../../src/model/payloads.ts";
import { type RecordKind, recordKinds, recordSchemas } from "../../src/model/records.ts";

/** The fields of a kind that hold any value, found in its schema. */
function anyFields(kind: RecordKind): string[] {
  const { shape } = recordSchemas[kind] as z.ZodObject;
  return Object.entries(shape).flatMap(([field, schema]) => (holdsAnything(schema as z.ZodType) ? [field] : []));
}

function holdsAnything(schema: z.ZodType): boolean {
  if (schema instanceof z.ZodUnknown) return true;
  return schema instanceof z.ZodOptional && holdsAnything(schema.unwrap() as z.ZodType);
}

describe("the table of payloads", () => {
  it("names every field of any value, or says why it is plain", () => {
    const open = recordKinds.flatMap((kind) =>
      anyFields(kind).flatMap((field) => {
        const sealed = payloadFields[kind]?.includes(field) ?? false;
        const plain = plainFields[kind]?.[field] !== undefined;
        return sealed === plain ? [`${kind} ${field}`] : [];
      }),
    );
    expect(open).toEqual([]);
  });

  it("names no field that its kind does not have", () => {
    const wrong = Object.entries(payloadFields).flatMap(([kind, fields]) =>
      fields.flatMap((path) => {
        const [field = ""] = path.split(".");
        const { shape } = recordSchemas[kind as RecordKind] as z.ZodObject;
        const fits = textFields.has(`${kind} ${path}`) || holdsAnything(shape[field] as unknown as z.ZodType);
        return shape[field] !== undefined && fits ? [] : [`${kind} ${path}`];
      }),
    );
    expect(wrong).toEqual([]);
    expect(recordKinds.filter((kind) => anyFields(kind).length > 0).length).toBeGreaterThan(20);
  });
});

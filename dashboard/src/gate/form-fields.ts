import type { JsonSchema } from "./json-schema.ts";

/** One input of a form. */
export interface Field {
  /** The property, or "" for a value that is no object. */
  readonly name: string;
  readonly label: string;
  readonly about: string | undefined;
  readonly kind: "text" | "number" | "integer" | "choice";
  readonly required: boolean;
  /** For a choice: the values, booleans among them. */
  readonly choices: readonly unknown[];
  readonly schema: JsonSchema;
}

/** Longer forms are no easier to fill in than JSON. */
const maxFields = 12;

/**
 * The inputs for a value: one for each property of an object whose properties are text, numbers, booleans or choices, or
 * one for such a value itself. undefined: the value has another form, and is entered as JSON.
 */
export function fieldsOf(schema: JsonSchema): readonly Field[] | undefined {
  if (schema.type !== "object") {
    const only = fieldOf("", "Value", schema, true);
    return only === undefined ? undefined : [only];
  }
  const { properties = {}, required = [] } = schema;
  const fields = Object.entries(properties).map(([name, part]) =>
    fieldOf(name, part.title ?? name, part, required.includes(name)),
  );
  const isSimple = fields.length > 0 && fields.length <= maxFields && fields.every((field) => field !== undefined);
  return isSimple ? (fields as Field[]) : undefined;
}

function fieldOf(name: string, label: string, schema: JsonSchema, required: boolean): Field | undefined {
  const field = { name, label, about: schema.description, required, choices: [], schema };
  if (schema.enum !== undefined) return { ...field, kind: "choice", choices: schema.enum };
  if (schema.const !== undefined) return { ...field, kind: "choice", choices: [schema.const] };
  switch (schema.type) {
    case "boolean":
      return { ...field, kind: "choice", choices: [true, false] };
    case "string":
      return { ...field, kind: "text" };
    case "number":
    case "integer":
      return { ...field, kind: schema.type };
    default:
      return undefined;
  }
}

/** What each input shows before it is changed. Choices are shown by their number. */
export function initialTexts(fields: readonly Field[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    fields.map(({ name, kind, choices, schema, required }) => {
      const index = choices.indexOf(schema.default);
      if (kind === "choice") return [name, index >= 0 ? String(index) : required && choices.length === 1 ? "0" : ""];
      return [name, schema.default === undefined ? "" : String(schema.default)];
    }),
  );
}

/** The value that the inputs make. An input that is empty and not required is left out. */
export function enteredValue(fields: readonly Field[], texts: Readonly<Record<string, string>>): unknown {
  const entries = fields.flatMap((field): [string, unknown][] => {
    const text = texts[field.name] ?? "";
    if (text === "" && (!field.required || field.kind !== "text")) return [];
    return [[field.name, partOf(field, text)]];
  });
  return fields.length === 1 && fields[0]!.name === "" ? entries[0]?.[1] : Object.fromEntries(entries);
}

const partOf = ({ kind, choices }: Field, text: string): unknown => {
  if (kind === "choice") return choices[Number(text)];
  return kind === "text" ? text : Number(text);
};

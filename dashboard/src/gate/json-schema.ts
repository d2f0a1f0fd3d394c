/** The part of JSON Schema (2020-12) that the forms of gates understand. Other keywords are left to the run's own schema. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
}

type Check = (schema: JsonSchema, value: unknown) => string | undefined;

const typeOf = (value: unknown): string => {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value;
};
const hasType = (value: unknown, type: string): boolean =>
  type === "integer" ? Number.isInteger(value) : typeOf(value) === type;
const sameJson = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
/** Programs and their libraries write patterns that this browser may not know. */
function matches(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true;
  }
}

const checks: readonly Check[] = [
  ({ type }, value) => {
    const types = type === undefined ? [] : typeof type === "string" ? [type] : type;
    return types.length === 0 || types.some((one) => hasType(value, one)) ? undefined : `must be ${types.join(" or ")}`;
  },
  ({ enum: choices }, value) =>
    choices === undefined || choices.some((choice) => sameJson(choice, value))
      ? undefined
      : `must be ${choices.map((choice) => JSON.stringify(choice)).join(" or ")}`,
  (schema, value) =>
    !("const" in schema) || sameJson(schema.const, value) ? undefined : `must be ${JSON.stringify(schema.const)}`,
  (schema, value) => {
    if (typeof value !== "number") return undefined;
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
    if (minimum !== undefined && value < minimum) return `must be at least ${minimum}`;
    if (maximum !== undefined && value > maximum) return `must be at most ${maximum}`;
    if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) return `must be above ${exclusiveMinimum}`;
    if (exclusiveMaximum !== undefined && value >= exclusiveMaximum) return `must be below ${exclusiveMaximum}`;
    return undefined;
  },
  ({ minLength, maxLength, pattern }, value) => {
    if (typeof value !== "string") return undefined;
    const { length } = [...value];
    if (minLength !== undefined && length < minLength) return `must have at least ${minLength} characters`;
    if (maxLength !== undefined && length > maxLength) return `must have at most ${maxLength} characters`;
    return pattern === undefined || matches(pattern, value) ? undefined : `must match ${pattern}`;
  },
  ({ minItems, maxItems }, value) => {
    if (!Array.isArray(value)) return undefined;
    if (minItems !== undefined && value.length < minItems) return `must have at least ${minItems} items`;
    return maxItems === undefined || value.length <= maxItems ? undefined : `must have at most ${maxItems} items`;
  },
];

/** What is wrong with a value, each with its place; empty: nothing that this part of JSON Schema can say. */
export function problemsOf(schema: JsonSchema, value: unknown, at = "value"): string[] {
  const own = checks.flatMap((check) => check(schema, value) ?? []);
  if (own.length > 0) return own.map((problem) => `${at} ${problem}`);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined && !choices.some((choice) => problemsOf(choice, value, at).length === 0))
    return choices.length === 1 ? problemsOf(choices[0]!, value, at) : [`${at} has none of the allowed forms`];
  if (Array.isArray(value))
    return schema.items === undefined ? [] : value.flatMap((item, k) => problemsOf(schema.items!, item, `${at}[${k}]`));
  if (typeof value !== "object" || value === null) return [];
  return propertyProblems(schema, value as Readonly<Record<string, unknown>>, at === "value" ? "" : `${at}.`);
}

function propertyProblems(schema: JsonSchema, value: Readonly<Record<string, unknown>>, prefix: string): string[] {
  const { properties = {}, required = [], additionalProperties } = schema;
  const missing = required.filter((name) => !Object.hasOwn(value, name)).map((name) => `${prefix}${name} is missing`);
  const wrong = Object.entries(value).flatMap(([name, part]) => {
    if (Object.hasOwn(properties, name)) return problemsOf(properties[name]!, part, `${prefix}${name}`);
    if (additionalProperties === false) return [`${prefix}${name} is not expected`];
    return typeof additionalProperties === "object" ? problemsOf(additionalProperties, part, `${prefix}${name}`) : [];
  });
  return [...missing, ...wrong];
}

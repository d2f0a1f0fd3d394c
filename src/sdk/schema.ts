import { TapeError } from "../model/errors.ts";
import { shown } from "./validate.ts";

/** The part of Standard Schema (standardschema.dev) that Tape uses; any validator that implements it works. */
export interface Schema<T = unknown> {
  /** The interface of Standard Schema, version 1: `validate` checks a value and returns it, or the issues. */
  readonly "~standard": {
    readonly version: 1;
    /** The library that made it. */
    readonly vendor: string;
    /** Returns the checked value, or the issues. */
    readonly validate: (value: unknown) => SchemaResult<T> | Promise<SchemaResult<T>>;
    /** For inference alone; no value is there at run time. */
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
    /** Standard JSON Schema: the dashboard makes a form of a gate's value from it. */
    readonly jsonSchema?: { input(options: { readonly target: "draft-2020-12" }): Record<string, unknown> } | undefined;
  };
}

/** A validated value, or what is wrong with it. */
export type SchemaResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] };

/** Refuses a value that is not a schema at the definition, because it would otherwise throw at the first value. */
export function schemaOf(subject: string, field: string, schema: unknown): void {
  if (schema === undefined) return;
  const standard = (schema as { "~standard"?: { validate?: unknown } } | null)?.["~standard"];
  if (typeof standard?.validate === "function") return;
  const message = `${subject}: ${field} is no schema of Standard Schema (zod, valibot, arktype): ${shown(schema)}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field });
}

/** The validated value, or a description of what is wrong with it. */
export async function validate<T>(
  schema: Schema<T> | undefined,
  value: unknown,
): Promise<{ value: T } | { fault: string }> {
  if (schema === undefined) return { value: value as T };
  return resultOf(await schema["~standard"].validate(value));
}

/** The same, synchronously: a value that arrives between two records cannot wait for an asynchronous validator. */
export function checkNow<T>(schema: Schema<T> | undefined, value: unknown): { value: T } | { fault: string } {
  if (schema === undefined) return { value: value as T };
  const result = schema["~standard"].validate(value);
  if (!(result instanceof Promise)) return resultOf(result);
  result.catch(() => {});
  return { fault: "the schema is asynchronous; a gate needs a synchronous one" };
}

function resultOf<T>(result: SchemaResult<T>): { value: T } | { fault: string } {
  if (result.issues === undefined) return { value: result.value };
  return { fault: result.issues.map((issue) => `${pathOf(issue.path)}${issue.message}`).join("; ") };
}

function pathOf(path: readonly unknown[] | undefined): string {
  if (path === undefined || path.length === 0) return "";
  const keys = path.map((part) =>
    typeof part === "object" && part !== null && "key" in part ? String(part.key) : String(part),
  );
  return `${keys.join(".")}: `;
}

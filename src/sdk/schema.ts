import { TapeError } from "../model/errors.ts";
import { shown } from "./validate.ts";

/** The part of Standard Schema (standardschema.dev) that is used here: any validator that follows it fits. */
export interface Schema<T = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<T> | Promise<SchemaResult<T>>;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
  };
}

/** A validated value, or what is wrong with it. */
export type SchemaResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] };

/** Refuses what is no schema where it is defined: it would throw at the first value instead. */
export function schemaOf(whose: string, field: string, schema: unknown): void {
  if (schema === undefined) return;
  const standard = (schema as { "~standard"?: { validate?: unknown } } | null)?.["~standard"];
  if (typeof standard?.validate === "function") return;
  const message = `${whose}: ${field} is no schema of Standard Schema (zod, valibot, arktype): ${shown(schema)}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field });
}

/** The checked value, or what is wrong with it in words. */
export async function validate<T>(
  schema: Schema<T> | undefined,
  value: unknown,
): Promise<{ value: T } | { fault: string }> {
  if (schema === undefined) return { value: value as T };
  return said(await schema["~standard"].validate(value));
}

/** The same at once: where a value arrives between two records, nobody can wait for a validator that asks elsewhere. */
export function checkNow<T>(schema: Schema<T> | undefined, value: unknown): { value: T } | { fault: string } {
  if (schema === undefined) return { value: value as T };
  const result = schema["~standard"].validate(value);
  if (!(result instanceof Promise)) return said(result);
  result.catch(() => {});
  return { fault: "the schema answers later; a gate needs one that answers at once" };
}

function said<T>(result: SchemaResult<T>): { value: T } | { fault: string } {
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

import { TapeError } from "../../model/errors.ts";
import { validate } from "../../sdk/schema.ts";
import type { AnyWorkflow } from "../../sdk/workflow.ts";
import type { History } from "../replay/history.ts";

/**
 * The input of a run whose starter did not have the schema (the command line, HTTP, a parent, a schedule): as the
 * schema returns it, or why it does not fit. It is the same on every replay as long as the schema is.
 */
export async function inputOf(
  { created, lastPos }: History,
  { name, schema }: AnyWorkflow,
): Promise<{ readonly value: unknown } | { readonly fault: TapeError }> {
  const value = created.input;
  const checked = await validate(schema, value);
  if ("value" in checked) return checked;
  // It fitted when the run started. A schema that was narrowed since then applies to later runs only.
  if (lastPos.size > 0) return { value };
  return { fault: new TapeError("TAPE_BAD_INPUT", `input of ${name}: ${checked.fault}`, { field: "input" }) };
}

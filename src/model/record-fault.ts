import { type RecordKind, recordSchemas } from "./records.ts";

/** Describes what is wrong with `data`; undefined: it is valid. */
export function recordFault(kind: RecordKind, data: unknown): string | undefined {
  if (kind === "step.done" && isStep(data)) return undefined;
  if (kind === "sleep.ended" && isSleepEnd(data)) return undefined;
  if (kind === "run.created" && isPlainCreation(data)) return undefined;
  const result = recordSchemas[kind].safeParse(data);
  if (result.success) return undefined;
  return result.error.issues.map((issue) => `${issue.path.join(".") || "data"}: ${issue.message}`).join("; ");
}

/** The most frequent record in its most frequent form. Checking it by hand is several times faster than the schema. */
function isStep(data: unknown): boolean {
  if (typeof data !== "object" || data === null) return false;
  for (const key in data) if (key !== "pos" && key !== "name" && key !== "value" && key !== "error") return false;
  const { pos, name: stepName } = data as { pos?: unknown; name?: unknown };
  return Number.isSafeInteger(pos) && (pos as number) >= 0 && typeof stepName === "string" && stepName.length > 0;
}

/** A thousand of these may arrive at the same moment, so this check is hand-written, too. */
function isSleepEnd(data: unknown): boolean {
  if (typeof data !== "object" || data === null) return false;
  for (const key in data) if (key !== "pos" && key !== "fired") return false;
  const { pos, fired } = data as { pos?: unknown; fired?: unknown };
  return Number.isSafeInteger(pos) && (pos as number) >= 0 && fired === true;
}

const plainCreation: ReadonlySet<string> = new Set(["id", "workflow", "input", "inputHash", "checked"]);

/** A run that uses none of the many options of a start. Its schema has a field for each of them. */
function isPlainCreation(data: unknown): boolean {
  if (typeof data !== "object" || data === null || !("input" in data)) return false;
  for (const key in data) if (!plainCreation.has(key)) return false;
  const { id, workflow, inputHash, checked } = data as Readonly<Record<string, unknown>>;
  return isName(id) && isName(workflow) && isName(inputHash) && (checked === undefined || checked === true);
}

const isName = (value: unknown): boolean => typeof value === "string" && value.length > 0;

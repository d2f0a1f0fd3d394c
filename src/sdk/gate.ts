import { type Approvers, approversShape } from "../model/approvers.ts";
import { TapeError } from "../model/errors.ts";
import { type Schema, schemaOf } from "./schema.ts";
import { assertKnownKeys, assertName } from "./validate.ts";

/** A durable wait for a signal of this name; T is the type of the signal's value. */
export interface GateDefinition<T> {
  readonly name: string;
  readonly schema: Schema<T> | undefined;
  readonly approvers: Approvers | undefined;
}

/** The schema of a gate's value, and its approvers. */
export interface GateDefinitionOptions<T> {
  readonly schema?: Schema<T>;
  /** Who may answer the gate, checked where the signal arrives; absent: every sender of signals. */
  readonly approvers?: Approvers;
}

/**
 * @example
 * const cfo = gate<{ approved: boolean }>("cfo", { approvers: { role: "operator", not: "starter" } });
 */
export function gate<T = unknown>(name: string, options: GateDefinitionOptions<T> = {}): GateDefinition<T> {
  assertName("a gate", name);
  assertKnownKeys(`gate ${name}`, options, ["schema", "approvers"], {
    timeout: "a timeout belongs to the wait: tape.gate(gate, { timeout })",
  });
  schemaOf(`gate ${name}`, "schema", options.schema);
  return { name, schema: options.schema, approvers: approversOf(name, options.approvers) };
}

function approversOf(name: string, given: unknown): Approvers | undefined {
  if (given === undefined) return undefined;
  const parsed = approversShape.safeParse(given);
  if (parsed.success && Object.keys(parsed.data).length > 0) return parsed.data;
  const [issue] = parsed.error?.issues ?? [];
  const fault = issue === undefined ? "it is empty" : `${issue.path.join(".")}: ${issue.message}`;
  throw new TapeError(
    "TAPE_BAD_INPUT",
    `gate ${name}: approvers must be { role, tokens, by, not: "starter" }: ${fault}`,
    {
      field: "approvers",
    },
  );
}

import { type Approvers, approversShape } from "../model/approvers.ts";
import { TapeError } from "../model/errors.ts";
import { type Schema, schemaOf } from "./schema.ts";
import { assertKnownKeys, assertName, booleanOr } from "./validate.ts";

/** A durable wait for a signal of this name; T is the type of the signal's value. */
export interface GateDefinition<T> {
  /** The name that signals use. */
  readonly name: string;
  readonly schema: Schema<T> | undefined;
  readonly approvers: Approvers | undefined;
}

/** A gate whose signals may ask for a reply of type R, see `app.ask`. */
export interface ReplyGate<T, R> extends GateDefinition<T> {
  /** Marks a gate whose signals may ask for a reply. */
  readonly reply: true;
  /** Never set: it carries the type of the reply. */
  readonly replies?: R;
}

/** The schema of a gate's value, and its approvers. */
export interface GateDefinitionOptions<T> {
  readonly schema?: Schema<T>;
  /** Who may answer the gate, checked where the signal arrives; absent: every sender of signals. */
  readonly approvers?: Omit<Approvers, "agents">;
  /** Agents may answer it with the tool `signal` of `durable-tape mcp`, while it is open. Default false. */
  readonly forAgents?: boolean;
}

/**
 * Defines a gate: a name, and what its answers must look like.
 *
 * @throws TAPE_BAD_INPUT if the name or an option is not valid.
 * @example
 * const cfo = gate<{ approved: boolean }>("cfo", { approvers: { role: "operator", not: "starter" } });
 * const add = gate<{ sku: string }, { total: number }>("add", { reply: true });
 */
export function gate<T = unknown, R = unknown>(
  name: string,
  options: GateDefinitionOptions<T> & { readonly reply: true },
): ReplyGate<T, R>;
export function gate<T = unknown>(name: string, options?: GateDefinitionOptions<T>): GateDefinition<T>;
export function gate<T>(
  name: string,
  options: GateDefinitionOptions<T> & { readonly reply?: true } = {},
): GateDefinition<T> | ReplyGate<T, unknown> {
  assertName("a gate", name);
  assertKnownKeys(`gate ${name}`, options, ["schema", "approvers", "forAgents", "reply"], {
    timeout: "a timeout belongs to the wait: tape.gate(gate, { timeout })",
  });
  schemaOf(`gate ${name}`, "schema", options.schema);
  booleanOr(`gate ${name}`, "forAgents", options.forAgents);
  const approvers = approversOf(name, options.approvers);
  // Kept with the approvers: a server knows them of every open gate, also without the code of the workflow.
  const definition = {
    name,
    schema: options.schema,
    approvers: options.forAgents === true ? { ...approvers, agents: true as const } : approvers,
  };
  booleanOr(`gate ${name}`, "reply", options.reply);
  return options.reply === true ? { ...definition, reply: true as const } : definition;
}

export function isReplyGate<T>(gate: GateDefinition<T>): gate is ReplyGate<T, unknown> {
  return (gate as { reply?: unknown }).reply === true;
}

/** Agents are admitted by `forAgents`. */
const givenShape = approversShape.omit({ agents: true });

const faultOf = ({ path, message }: { readonly path: readonly PropertyKey[]; readonly message: string }): string =>
  `${path.join(".")}: ${message}`;

function faultIn(approvers: Approvers): string | undefined {
  if (Object.keys(approvers).length === 0) return "it is empty";
  return approvers.not !== undefined && approvers.self !== undefined ? "not excludes whom self admits" : undefined;
}

function approversOf(name: string, given: unknown): Approvers | undefined {
  if (given === undefined) return undefined;
  const parsed = givenShape.safeParse(given);
  const fault = parsed.success ? faultIn(parsed.data) : faultOf(parsed.error.issues[0]!);
  if (parsed.success && fault === undefined) return parsed.data;
  const message = `gate ${name}: approvers must be { role, tokens, by, not: "starter" or self: true }: ${fault}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "approvers" });
}

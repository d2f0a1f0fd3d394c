import { type DurableTool, durableTool, type ToolOutcome } from "../agent/tool-call.ts";
import {
  type AnyToolPolicy,
  assertToolKit,
  type DurableToolsOptions,
  type ToolArgs,
  type ToolBody,
  type ToolPolicy,
} from "../agent/tool-policy.ts";
import { TapeError } from "../model/errors.ts";
import type { Workflow } from "../sdk/context.ts";
import { current } from "../sdk/current.ts";
import type { Effect } from "../sdk/effect.ts";

/** A tool of the AI SDK: an object with `execute`. */
export interface ToolLike {
  /** What the model reads about it. */
  readonly description?: unknown;
  /** The schema of its input. */
  readonly inputSchema?: unknown;
}

/** The fields of a tool that Tape uses, and what the SDK passes to them. */
interface ExecutableTool {
  readonly execute?: (input: unknown, options: ExecuteOptions) => unknown;
  readonly needsApproval?: boolean | ((input: unknown, options: ExecuteOptions) => boolean | PromiseLike<boolean>);
}

interface ExecuteOptions {
  readonly toolCallId: string;
  readonly abortSignal?: AbortSignal;
}

/** The input of a tool, as the SDK infers it. */
type InputOf<T> = T extends { readonly execute?: (input: infer I, ...rest: never) => unknown } ? I : unknown;

/** A policy for each tool, by its name. */
export type ToolPolicies<T> = { readonly [K in keyof T]?: ToolPolicy<InputOf<T[K]>> };

/** The tools for the agent, and their effects for the runner. */
export interface ToolKit<T> {
  /** The tools, for the agent. */
  readonly tools: T;
  /** Their effects, for `createRunner`. */
  readonly effects: readonly Effect<ToolArgs, unknown>[];
}

/**
 * Makes tools of the AI SDK durable: each call is an effect of the current run with the policy of its tool. A tool
 * without `execute` is left as it is: the SDK does not run it.
 *
 * @example
 * const kit = durableTools("treasury", { search, pay }, { search: { semantics: "read" }, pay: { businessKey: (a: Invoice) => a.invoice, observe } });
 * const runner = createRunner({ workflows: [chat], effects: kit.effects });
 */
export function durableTools<T extends Readonly<Record<string, ToolLike>>>(
  group: string,
  tools: T,
  policies: ToolPolicies<T> = {},
  options: DurableToolsOptions = {},
): ToolKit<T> {
  assertToolKit(group, Object.keys(tools), policies, options);
  const effects: Effect<ToolArgs, unknown>[] = [];
  const wrapped = Object.entries(tools).map(([name, tool]) => {
    const policy = policies[name as keyof T] as AnyToolPolicy | undefined;
    const { execute } = tool as ExecutableTool;
    if (execute === undefined) {
      if (policy === undefined) return [name, tool];
      throw new TapeError("TAPE_BAD_INPUT", `tool ${name} has no execute, so a policy has no effect`, { field: name });
    }
    const durable = durableTool(group, name, bodyOf(execute), policy, options);
    if (durable.effect !== undefined) effects.push(durable.effect);
    return [name, wrapTool(tool, durable)];
  });
  return { tools: Object.fromEntries(wrapped) as T, effects };
}

/** The SDK's own signal ends with the SDK's call; the effect has its own time-out and lease. */
const bodyOf =
  (execute: NonNullable<ExecutableTool["execute"]>): ToolBody =>
  async (input: unknown, { call, abortSignal, beside }) => {
    const options = { ...((beside as object | undefined) ?? { toolCallId: call, messages: [] }), abortSignal };
    return await lastOf(await execute(input, options as ExecuteOptions));
  };

/** A tool may yield preliminary results; the last one is its result. */
async function lastOf(result: unknown): Promise<unknown> {
  if (typeof result !== "object" || result === null || !(Symbol.asyncIterator in result)) return result;
  if (result instanceof ReadableStream) return result;
  let last: unknown;
  for await (const value of result as AsyncIterable<unknown>) last = value;
  return last;
}

function wrapTool(tool: ToolLike, durable: DurableTool): ToolLike {
  const { needsApproval } = tool as ExecutableTool;
  const byGate = durable.policy.given.approve === "framework";
  const execute = async (input: unknown, options: ExecuteOptions): Promise<unknown> => {
    const { toolCallId: call } = options;
    const approve =
      byGate && typeof needsApproval === "function" ? await needsApproval(input, options) : needsApproval === true;
    return resultOf(await durable.call({ call, input, beside: options, approve }));
  };
  return { ...tool, execute, ...(byGate && { needsApproval: undefined }) } as ToolLike;
}

/** The SDK gives the message of an error to the model. So does Mastra. */
export function resultOf(outcome: ToolOutcome): unknown {
  if (outcome.ok) return outcome.value;
  throw Object.assign(new Error(outcome.words), { name: "ToolCallFailed", status: outcome.status });
}

/** How a workflow is shown to a model. */
export interface WorkflowTool<S> {
  /** What the model reads about it. */
  readonly description: string;
  /** A schema of the SDK: zod, or `jsonSchema(…)`. */
  readonly inputSchema: S;
}

/** A tool that the SDK executes. */
export interface ExecutedTool<I, O, S> extends WorkflowTool<S> {
  /** Starts the child run and waits for its result. */
  readonly execute: (input: I, options: { readonly toolCallId: string }) => Promise<O>;
}

/**
 * A workflow as a tool: the model starts a child run and receives its result. For sub-agents: the child has a journal of
 * its own, shares the budget, and is cancelled with the run.
 *
 * @example
 * const tools = { research: asTool(researcher, { description: "Finds sources", inputSchema: z.object({ topic: z.string() }) }) };
 */
export function asTool<I, O, S>(
  workflow: Workflow<I, O>,
  { description, inputSchema }: WorkflowTool<S>,
): ExecutedTool<I, O, S> {
  const child = durableTool("child", workflow.name, (input: never) => current().call(workflow, input), { local: true });
  return {
    description,
    inputSchema,
    execute: async (input, { toolCallId: call }) => resultOf(await child.call({ call, input })) as O,
  };
}

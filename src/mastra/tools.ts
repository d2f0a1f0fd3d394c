import { createTool } from "@mastra/core/tools";
import { type DurableTool, durableTool } from "../agent/tool-call.ts";
import {
  type AnyToolPolicy,
  assertToolKit,
  type DurableToolsOptions,
  type ToolArgs,
  type ToolBody,
  type ToolPolicy,
} from "../agent/tool-policy.ts";
import { resultOf } from "../ai/tools.ts";
import { TapeError } from "../model/errors.ts";
import type { Effect } from "../sdk/effect.ts";
import { DefiniteFailure } from "../sdk/outcomes.ts";

/** A tool of Mastra, as `createTool` makes it, or an agent that another one consults. */
export type ToolOrAgent = ToolLike | AgentLike;

export interface ToolLike {
  readonly id: string;
  readonly description: string;
}

/** An agent of Mastra. */
export interface AgentLike {
  readonly name: string;
  getDescription(): string;
  generate(prompt: string, options?: { readonly abortSignal: AbortSignal }): Promise<{ readonly text: string }>;
}

/** What Mastra passes to a tool besides its input. */
interface Context {
  readonly agent?: { readonly toolCallId?: string };
  readonly requestContext?: { entries(): Iterable<readonly [string, unknown]> };
  readonly workspace?: unknown;
}

/** The fields of a tool that Tape uses. */
interface ExecutableTool extends ToolLike {
  readonly execute?: (input: unknown, context: object) => unknown;
  readonly requireApproval?: boolean | Approves;
  readonly needsApprovalFn?: Approves;
  readonly suspendSchema?: unknown;
  readonly resumeSchema?: unknown;
}
type Approves = (input: unknown, context: object) => boolean | Promise<boolean>;

/** The input of a tool, as its schema says. */
type InputOf<T> = T extends { readonly execute?: ((input: infer I, ...rest: never) => unknown) | undefined }
  ? I
  : unknown;

/** A policy for each tool, by its name. An agent needs none. */
export type ToolPolicies<T> = { readonly [K in keyof T]?: ToolPolicy<InputOf<T[K]>> };

/** The tools for the agent, and their effects for the runner. */
export interface ToolKit<T> {
  /** The tools, for the agent. */
  readonly tools: { readonly [K in keyof T]: T[K] extends AgentLike ? AgentTool : T[K] };
  /** Their effects, for `createRunner`. */
  readonly effects: readonly Effect<ToolArgs, unknown>[];
}

/** A tool that consults an agent. */
export type AgentTool = ReturnType<typeof createTool>;

/**
 * Makes tools of Mastra durable: each call is an effect of the current run with the policy of its tool. An agent among
 * them becomes a tool that consults it, in a lane of its own.
 *
 * @example
 * const kit = durableTools("treasury", { search, pay, lawyer }, { search: { semantics: "read" }, pay: { businessKey: (a) => a.invoice, observe } });
 * const agent = new Agent({ id: "treasurer", name: "Treasurer", instructions, model: durableModel(model), tools: kit.tools });
 */
export function durableTools<T extends Readonly<Record<string, ToolOrAgent>>>(
  group: string,
  tools: T,
  policies: ToolPolicies<T> = {},
  options: DurableToolsOptions = {},
): ToolKit<T> {
  assertToolKit(group, Object.keys(tools), policies, options);
  const effects: Effect<ToolArgs, unknown>[] = [];
  const wrapped = Object.entries(tools).map(([name, tool]) => {
    const policy = policies[name as keyof T] as AnyToolPolicy | undefined;
    const agent = isAgent(tool);
    const body = agent ? consulted(tool) : executed(name, tool);
    const durable = durableTool(group, name, body, agent ? { local: true, ...policy } : withApproval(policy), options);
    if (durable.effect !== undefined) effects.push(durable.effect);
    return [name, wrapTool(agent ? agentTool(name, tool) : tool, durable)];
  });
  return { tools: Object.fromEntries(wrapped) as ToolKit<T>["tools"], effects };
}

const isAgent = (tool: ToolOrAgent): tool is AgentLike => "generate" in tool && typeof tool.generate === "function";

/** The gate takes the place of Mastra's own suspension, unless the policy decides. */
const withApproval = (policy: AnyToolPolicy | undefined): AnyToolPolicy => ({ approve: "framework", ...policy });

/** Mastra's signal ends with its call; the effect has its own time-out and lease. */
function executed(name: string, tool: ExecutableTool): ToolBody {
  const { execute, suspendSchema, resumeSchema } = tool;
  if (execute === undefined) throw refused(name, "has no execute, so Tape cannot run it: pass it to the agent itself");
  if (suspendSchema !== undefined || resumeSchema !== undefined) {
    throw refused(name, "suspends itself: give it the policy `approve`, or wait at a gate of the workflow");
  }
  return (input: unknown, { call, abortSignal, beside }) => {
    const { agent, ...context } = (beside ?? {}) as Context;
    const suspend = (): never => {
      throw new DefiniteFailure("a durable tool cannot suspend: give it the policy `approve`");
    };
    // Mastra has parsed the input, and would parse it again for a new context: not where data to resume with is present.
    const own = {
      ...context,
      agent: { messages: [], ...agent, toolCallId: call, suspend },
      abortSignal,
      resumeData: {},
    };
    return execute(input, own);
  };
}

const refused = (name: string, why: string): TapeError =>
  new TapeError("TAPE_BAD_INPUT", `tool ${name} ${why}`, { field: name });

const consulted =
  (agent: AgentLike): ToolBody =>
  async ({ prompt }: { prompt: string }, { abortSignal }) =>
    (await agent.generate(prompt, { abortSignal })).text;

const agentTool = (name: string, agent: AgentLike): ExecutableTool =>
  createTool({
    id: name,
    description: agent.getDescription() || `Consults ${agent.name}`,
    inputSchema: { type: "object", properties: { prompt: { type: "string" } }, required: ["prompt"] },
    execute: async () => undefined,
  }) as ExecutableTool;

/** A copy of the tool, with the marks by which Mastra recognises it. */
function wrapTool(tool: ExecutableTool, durable: DurableTool): ExecutableTool {
  const byGate = durable.policy.given.approve === "framework";
  const { requireApproval, needsApprovalFn = requireApproval } = tool;
  const execute = async (input: unknown, context: Context = {}): Promise<unknown> => {
    const call = context.agent?.toolCallId;
    if (call === undefined) throw refused(durable.name, "was called without the id of its call: an agent calls it");
    const approve =
      typeof needsApprovalFn === "function" ? () => needsApprovalFn(input, approving(context)) : needsApprovalFn;
    return resultOf(await durable.call({ call, input, beside: context, approve }));
  };
  const copy = Object.assign(Object.create(Object.getPrototypeOf(tool)) as ExecutableTool, tool);
  return Object.assign(copy, { execute }, byGate && { requireApproval: false, needsApprovalFn: undefined });
}

const approving = ({ requestContext, workspace }: Context): object => ({
  ...(requestContext !== undefined && { requestContext: Object.fromEntries(requestContext.entries()) }),
  workspace,
});

import { type FunctionTool, tool as frameworkTool, type RunContext, type Tool } from "@openai/agents";
import { type DurableTool, durableTool, type ToolOutcome } from "../agent/tool-call.ts";
import { type AnyToolPolicy, assertToolKit, type DurableToolsOptions, type ToolArgs } from "../agent/tool-policy.ts";
import { TapeError } from "../model/errors.ts";
import type { Effect } from "../sdk/effect.ts";

interface Details {
  readonly toolCall?: { readonly callId: string };
  readonly signal?: AbortSignal;
}

/** The options of the framework's `tool` that Tape replaces. */
interface RawTool {
  readonly execute: (input: unknown, context: RunContext, details?: Details) => unknown;
  readonly needsApproval?:
    | boolean
    | ((context: RunContext, input: unknown, callId?: string) => boolean | Promise<boolean>);
  readonly errorFunction?: ((context: RunContext, error: unknown, details?: Details) => unknown) | null;
}

const rawTools = new WeakMap<object, RawTool>();

/**
 * The framework's `tool`, with the same options. It remembers the function of the tool: the framework's own tools turn
 * errors into words for the model, so that nothing behind them can tell a failure from a result.
 *
 * @example
 * const pay = tool({ name: "pay", description: "Pays an invoice", parameters, execute: ({ invoice }) => bank.pay(invoice) });
 */
export const tool: typeof frameworkTool = ((options: never) => {
  const made = frameworkTool(options) as object;
  rawTools.set(made, options);
  return made;
}) as typeof frameworkTool;

/** The tools for the agent, and their effects for the runner. */
export interface ToolKit {
  /** The tools, for the agent. */
  readonly tools: Tool[];
  /** Their effects, for `createRunner`. */
  readonly effects: readonly Effect<ToolArgs, unknown>[];
}

/** A policy for each tool, by its name. Its functions name the type of the input that they read. */
export type ToolPolicies = Readonly<Record<string, AnyToolPolicy>>;

/**
 * Makes tools durable: each call is an effect of the current run with the policy of its tool. Agents as tools
 * (`agent.asTool()`) and other tools that were not made by `tool` of this module need `local: true` or no policy. Tools
 * that the provider executes are left as they are.
 *
 * @example
 * const kit = durableTools("treasury", [search, pay], { search: { semantics: "read" }, pay: { businessKey: (a: Payment) => a.invoice, observe } });
 */
export function durableTools(
  group: string,
  tools: readonly Tool[],
  policies: ToolPolicies = {},
  options: DurableToolsOptions = {},
): ToolKit {
  const callable = tools.filter((one): one is FunctionTool => one.type === "function");
  const names = callable.map(({ name }) => name);
  assertToolKit(group, names, policies, options);
  const effects: Effect<ToolArgs, unknown>[] = [];
  const wrapped = tools.map((one): Tool => {
    if (one.type !== "function") return one;
    const policy = policies[one.name];
    const raw = rawTools.get(one);
    if (raw === undefined && policy !== undefined && policy.local !== true) throw hidden(one.name);
    const durable = durableTool(group, one.name, raw === undefined ? invoked(one) : executed(raw), policy, options);
    if (durable.effect !== undefined) effects.push(durable.effect);
    return raw === undefined ? throughLane(one, durable) : throughEffect(one, raw, durable);
  });
  return { tools: wrapped, effects };
}

const hidden = (name: string): TapeError =>
  new TapeError(
    "TAPE_BAD_INPUT",
    `tool ${name} hides its errors: make it with tool of durable-tape/openai-agents, or give it the policy { local: true }`,
    { field: name },
  );

/** What the framework passes with a call. */
interface Beside {
  readonly context: RunContext;
  readonly details: Details | undefined;
}

/** The framework's signal ends with the framework's call; an effect has its own time-out and lease. */
const executed =
  ({ execute }: RawTool) =>
  (
    input: unknown,
    { abortSignal, beside }: { readonly abortSignal: AbortSignal; readonly beside: unknown },
  ): unknown => {
    const { context, details } = (beside ?? {}) as Partial<Beside>;
    return execute(input, context as RunContext, { ...details, signal: abortSignal });
  };

const invoked =
  ({ invoke }: FunctionTool) =>
  (input: unknown, { beside }: { readonly beside: unknown }): unknown => {
    const { context, details } = beside as Beside;
    return invoke(context, JSON.stringify(input), details as never);
  };

/** The same tool whose function is the effect. Its time-out is the effect's, and no error of Tape becomes words. */
function throughEffect(one: FunctionTool, raw: RawTool, durable: DurableTool): Tool {
  const byGate = durable.policy.given.approve === "framework";
  const { needsApproval, errorFunction } = raw;
  const execute = async (input: unknown, context: RunContext, details?: Details): Promise<unknown> => {
    const call = callOf(details, one);
    const approve = typeof needsApproval === "function" ? () => needsApproval(context, input, call) : needsApproval;
    const outcome = await durable.call({ call, input, beside: { context, details }, approve });
    if (outcome.ok) return outcome.value;
    return errorFunction ? await errorFunction(context, failureOf(outcome), details) : wordsOf(outcome);
  };
  const {
    timeoutMs: _,
    timeoutBehavior: __,
    timeoutErrorFunction: ___,
    ...kept
  } = raw as unknown as Record<string, unknown>;
  const options = { ...kept, execute, errorFunction: null, ...(byGate && { needsApproval: false }) };
  return frameworkTool(options as never) as Tool;
}

function throughLane(one: FunctionTool, durable: DurableTool): Tool {
  const invoke = async (context: RunContext, json: string, details?: Details): Promise<unknown> => {
    const input = inputOf(json);
    if (input === undefined) return `the input of ${one.name} is no JSON`;
    const outcome = await durable.call({ call: callOf(details, one), input, beside: { context, details } });
    return outcome.ok ? outcome.value : wordsOf(outcome);
  };
  return { ...one, invoke } as Tool;
}

/** null is an input, undefined is none. */
function inputOf(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

const wordsOf = ({ words }: Extract<ToolOutcome, { ok: false }>): string => `error: ${words}`;

const failureOf = ({ words, status }: Extract<ToolOutcome, { ok: false }>): Error =>
  Object.assign(new Error(words), { name: "ToolCallFailed", status });

function callOf(details: Details | undefined, { name }: FunctionTool): string {
  const call = details?.toolCall?.callId;
  if (call !== undefined) return call;
  throw new TapeError("TAPE_BAD_INPUT", `tool ${name} was called without the id of its call`, { field: name });
}

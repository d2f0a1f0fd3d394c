import {
  BasePlugin,
  type BaseTool,
  type Context,
  isAgentTool,
  isFunctionTool,
  isLlmAgent,
  type LlmRequest,
  type LlmResponse,
} from "@google/adk";
import { halt } from "../agent/control.ts";
import type { ModelOptions } from "../agent/model-call.ts";
import { siteOf } from "../agent/site.ts";
import { type DurableTool, durableTool } from "../agent/tool-call.ts";
import type { AnyToolPolicy, ToolArgs, ToolBody } from "../agent/tool-policy.ts";
import { describeThrown } from "../base/thrown.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import { current, currentSite } from "../sdk/current.ts";
import type { Effect } from "../sdk/effect.ts";
import { assertKnownKeys, assertName, booleanOr } from "../sdk/validate.ts";
import { DurableLlm, inBranch, places } from "./llm.ts";
import { TapeSessionService } from "./sessions.ts";

/** A policy for each tool, by its name. Its functions name the type of the input that they read. */
export type ToolPolicies = Readonly<Record<string, AnyToolPolicy>>;

/** Options of the plugin. */
export interface TapePluginOptions {
  /** The first part of the names of effects; default `adk`. */
  readonly group?: string;
  /** For the models of all agents. */
  readonly model?: ModelOptions;
  /** true: every tool needs more than an empty policy. Default false. */
  readonly strict?: boolean;
}

/** What a tool returns, and what it has done to its context: state, transfers, artifacts. */
interface ToolRecord {
  readonly result?: unknown;
  readonly actions?: Readonly<Record<string, unknown>>;
}

/** The framework's own tools change nothing but the context of the call. */
const ownTools = new Set(["transfer_to_agent", "exit_loop", "set_model_response", "finish_task", "get_user_choice"]);

/**
 * Makes a tree of ADK agents durable: model calls are decisions of the current run, tools are effects, confirmations are
 * gates. The agents stay as they are. Outside a run it changes nothing.
 *
 * @example
 * const plugin = new TapePlugin({ search: { semantics: "read" }, pay: { businessKey: (a: Payment) => a.invoice, observe } });
 * const runner = new Runner({ appName: "treasury", agent, plugins: [plugin], sessionService: new TapeSessionService(tape) });
 */
export class TapePlugin extends BasePlugin {
  /** For the runner of Tape. */
  readonly effects: readonly Effect<ToolArgs, unknown>[];
  readonly #tools: ReadonlyMap<string, DurableTool>;
  readonly #model: ModelOptions;

  /** The policies of the tools, and options. */
  constructor(policies: ToolPolicies, options: TapePluginOptions = {}) {
    super("tape");
    assertKnownKeys("TapePlugin", options, ["group", "model", "strict"]);
    const { group = "adk", model = {}, strict } = options;
    assertName("TapePlugin: the group", group);
    booleanOr("TapePlugin", "strict", strict);
    const names = Object.entries(policies);
    const made = names.map(([name, policy]) =>
      durableTool(group, name, body, withApproval(policy), { strict: strict === true }),
    );
    this.#tools = new Map(made.map((one) => [one.name, one]));
    this.effects = made.flatMap(({ effect }) => (effect === undefined ? [] : [effect]));
    this.#model = model;
  }

  /** Only here is the agent known, and the model not yet asked. */
  override async beforeModelCallback(call: {
    callbackContext: Context;
    llmRequest: LlmRequest;
  }): Promise<LlmResponse | undefined> {
    const { agent, branch } = call.callbackContext.invocationContext;
    if (currentSite() === undefined || agent === undefined || !isLlmAgent(agent)) return undefined;
    const { canonicalModel, name } = agent;
    if (!(canonicalModel instanceof DurableLlm)) agent.model = new DurableLlm(canonicalModel, this.#model);
    places.set(call.llmRequest, { agent: name, branch });
    return undefined;
  }

  /** The framework makes an event of every error of a model. One of Tape has to end the run instead. */
  override async onModelErrorCallback(call: {
    callbackContext: Context;
    llmRequest: LlmRequest;
    error: Error;
  }): Promise<LlmResponse | undefined> {
    if (!isTapeError(call.error)) return undefined;
    const { sessionService } = call.callbackContext.invocationContext;
    if (!(sessionService instanceof TapeSessionService)) throw call.error;
    sessionService.end(call.error);
    return undefined;
  }

  /** The framework would wrap an error of a hook. So Tape's own errors end the next model call instead. */
  override async beforeToolCallback(call: {
    tool: BaseTool;
    toolArgs: Record<string, unknown>;
    toolContext: Context;
  }): Promise<Record<string, unknown> | undefined> {
    if (currentSite() === undefined || ownTools.has(call.tool.name)) return undefined;
    return await inBranch(call.toolContext.invocationContext.branch, async () => {
      try {
        return await this.#call(call);
      } catch (error) {
        if (isTapeError(error)) halt(siteOf(current()), error);
        return { error: describeThrown(error) };
      }
    });
  }

  /** Writes what the session service still holds, at the end of an invocation. */
  override async afterRunCallback({
    invocationContext,
  }: {
    invocationContext: Context["invocationContext"];
  }): Promise<void> {
    const { sessionService } = invocationContext;
    if (sessionService instanceof TapeSessionService) await sessionService.flush();
  }

  async #call(call: {
    tool: BaseTool;
    toolArgs: Record<string, unknown>;
    toolContext: Context;
  }): Promise<Record<string, unknown>> {
    const { tool, toolArgs: input, toolContext } = call;
    const durable = this.#durable(tool);
    const approve = isFunctionTool(tool) ? () => tool.checkRequireConfirmation(input, toolContext) : false;
    const outcome = await durable.call({ call: toolContext.functionCallId!, input, beside: call, approve });
    if (!outcome.ok) return { error: outcome.words };
    const { result, actions = {} } = (outcome.value ?? {}) as ToolRecord;
    toolContext.state.update((actions.stateDelta ?? {}) as Record<string, unknown>);
    const { stateDelta: _, ...rest } = actions;
    Object.assign(toolContext.actions, rest);
    const isObject = typeof result === "object" && result !== null && !Array.isArray(result);
    return isObject ? (result as Record<string, unknown>) : { result };
  }

  #durable(tool: BaseTool): DurableTool {
    const found = this.#tools.get(tool.name);
    if (isAgentTool(tool)) {
      const why = `${tool.name} is an AgentTool, whose agent the plugin does not see: make it a sub-agent, or a workflow`;
      throw new TapeError("TAPE_BAD_INPUT", why, { field: tool.name });
    }
    if (found !== undefined) return found;
    const why = `tool ${tool.name} is unknown to TapePlugin: give it a policy, {} if there is nothing to say about it`;
    throw new TapeError("TAPE_BAD_INPUT", why, { field: tool.name });
  }
}

/** The gate takes the place of the framework's own confirmation, unless the policy decides. */
const withApproval = (policy: AnyToolPolicy): AnyToolPolicy => ({ approve: "framework", ...policy });

/** Runs the tool as confirmed. A tool of the framework wraps what its function throws, so the function is called itself. */
const body: ToolBody = async (_: unknown, { beside }): Promise<ToolRecord> => {
  if (beside === undefined) throw new TapeError("TAPE_BAD_INPUT", "a tool of ADK runs only where its agent runs");
  const {
    tool,
    toolArgs: args,
    toolContext,
  } = beside as { tool: BaseTool; toolArgs: Record<string, unknown>; toolContext: Context };
  const result = await executionOf(tool)(args, toolContext);
  const actions = Object.entries(toolContext.actions).filter(([, value]) => isSet(value));
  return {
    ...(result !== undefined && { result }),
    ...(actions.length > 0 && { actions: JSON.parse(JSON.stringify(Object.fromEntries(actions))) }),
  };
};

type Execution = (args: Record<string, unknown>, context: Context) => unknown;

function executionOf(tool: BaseTool): Execution {
  const { execute, parameters } = tool as unknown as {
    execute?: Execution;
    parameters?: { parse?: (args: unknown) => Record<string, unknown> };
  };
  if (!isFunctionTool(tool) || execute === undefined)
    return (args, toolContext) => tool.runAsync({ args, toolContext });
  return (args, context) => execute.call(tool, parameters?.parse?.(args) ?? args, context);
}

const isSet = (value: unknown): boolean =>
  value !== undefined && !(typeof value === "object" && value !== null && Object.keys(value).length === 0);

import { ToolMessage } from "@langchain/core/messages";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { isGraphInterrupt } from "@langchain/langgraph";
import { perSite, siteOf } from "../agent/site.ts";
import { type DurableTool, durableTool } from "../agent/tool-call.ts";
import type { AnyToolPolicy, ToolArgs, ToolPolicy, ToolRun } from "../agent/tool-policy.ts";
import { TapeError } from "../model/errors.ts";
import { current } from "../sdk/current.ts";
import type { Effect } from "../sdk/effect.ts";
import { DefiniteFailure } from "../sdk/outcomes.ts";
import { marked, unmarked } from "./results.ts";

/** Tools for a graph, and their effects for `createRunner`. */
export interface ToolKit<T extends StructuredToolInterface = StructuredToolInterface> {
  /** The tools, for the agent. */
  readonly tools: T[];
  /** Their effects, for `createRunner`. */
  readonly effects: Effect<ToolArgs, unknown>[];
}

/** What the model chooses for a tool, as its schema says. */
type InputOf<T> = T extends { func: (input: infer I, ...rest: never[]) => unknown } ? I : never;

/** Policies by the name of the tool. Their functions receive the tool's input. */
export type ToolPolicies<T extends StructuredToolInterface = StructuredToolInterface> = {
  readonly [K in T["name"]]?: ToolPolicy<InputOf<Extract<T, { name: K }>>>;
};

/**
 * Tools of LangChain whose calls are effects of the current run: done once, also after a crash. `group` names the effects:
 * `<group>.<tool>`. A tool without a policy is never repeated; `strict` refuses it.
 *
 * @example
 * const kit = durableTools("treasury", [search, pay], { search: { semantics: "read" }, pay: { businessKey: (a) => a.invoice, observe } });
 */
export function durableTools<T extends StructuredToolInterface>(
  group: string,
  tools: readonly T[],
  policies: ToolPolicies<T> = {},
  options: { readonly strict?: boolean } = {},
): ToolKit<T> {
  const unknown = Object.keys(policies).find((name) => !tools.some((tool) => tool.name === name));
  if (unknown !== undefined) {
    const names = tools.map(({ name }) => name).join(", ");
    throw new TapeError("TAPE_BAD_INPUT", `there is a policy for ${unknown}, but the tools are ${names}`, {
      field: unknown,
    });
  }
  const given = policies as Readonly<Record<string, AnyToolPolicy>>;
  const kit = tools.map((tool) => {
    const own = tool as T & Callable;
    const durable = durableTool(group, tool.name, bodyOf(own), given[tool.name], options);
    return { durable, tool: wrapped(own, durable) };
  });
  return { tools: kit.map(({ tool }) => tool), effects: kit.flatMap(({ durable }) => durable.effect ?? []) };
}

/** What LangChain passes to a tool besides its input. */
interface Beside {
  readonly callbacks: unknown;
  readonly config: { readonly toolCall?: { readonly id?: string } } | undefined;
}

interface Callable {
  _call(input: unknown, callbacks: unknown, config: unknown): unknown;
}

function wrapped<T extends StructuredToolInterface & Callable>(tool: T, durable: DurableTool): T {
  const call = async (input: unknown, callbacks: unknown, config: Beside["config"]): Promise<unknown> => {
    const id = config?.toolCall?.id ?? `${tool.name} ${nextCall()}`;
    const outcome = await durable.call({ call: id, input, beside: { callbacks, config } satisfies Beside });
    if (outcome.ok) return unmarked(outcome.value);
    return new ToolMessage({ content: outcome.words, tool_call_id: id, name: tool.name, status: "error" });
  };
  return Object.create(tool, { _call: { value: call, writable: true, configurable: true } }) as T;
}

/** Calls without an id of a model: a node that calls a tool directly. */
const callsAt = perSite(() => ({ count: 0 }));
const nextCall = (): number => ++callsAt(siteOf(current())).count;

const bodyOf =
  (tool: Callable) =>
  async (input: never, { beside, abortSignal }: ToolRun): Promise<unknown> => {
    const { callbacks, config } = (beside ?? {}) as Partial<Beside>;
    try {
      // The signal of the effect: that of the graph is aborted when the run parks, and a tool that is sent again would hang.
      return marked(await lastOf(tool._call(input, callbacks, { ...config, signal: abortSignal })));
    } catch (error) {
      if (!isGraphInterrupt(error)) throw error;
      throw new DefiniteFailure(
        "a durable tool cannot call interrupt(): give it the policy `approve`, or interrupt in a node",
      );
    }
  };

/** A tool may be a generator: its last value is the result. */
async function lastOf(returned: unknown): Promise<unknown> {
  const found = await returned;
  if (typeof (found as AsyncGenerator | undefined)?.[Symbol.asyncIterator] !== "function") return found;
  const steps = found as AsyncGenerator;
  for (;;) {
    const step = await steps.next();
    if (step.done) return step.value;
  }
}

import {
  type AgentOutputItem,
  getDefaultModel,
  type Model,
  type ModelProvider,
  type ModelRequest,
  type ModelResponse,
  OpenAIProvider,
  type StreamEvent,
  Usage,
} from "@openai/agents";
import type { ModelRecord } from "../agent/conversation.ts";
import { LiveParts, pieces } from "../agent/live-parts.ts";
import {
  type Answer,
  type Invocation,
  type ModelCall,
  type ModelOptions,
  modelCall,
  modelOptionKeys,
} from "../agent/model-call.ts";
import { defined } from "../base/defined.ts";
import { TapeError } from "../model/errors.ts";
import { assertKnownKeys, shown } from "../sdk/validate.ts";
import { errorClasses, faultOf } from "./errors.ts";
import { groupsOf, itemsOf, messageOf, partsOf } from "./items.ts";

/** Options of durable models. */
export interface DurableModelOptions extends ModelOptions {
  /** The first part of `provider/model` in journals and prices. Default `openai`. */
  readonly provider?: string;
}

/**
 * A provider whose models record each call as a decision of the current run: one setting for a whole tree of agents.
 * Default for `inner`: OpenAI, as the framework has it.
 *
 * @example
 * const result = await run(agent, text, { modelProvider: durableProvider() });
 */
export function durableProvider(
  inner: ModelProvider = new OpenAIProvider(),
  options: DurableModelOptions = {},
): ModelProvider {
  assertKnownKeys("durableProvider", options, optionKeys);
  if (typeof inner?.getModel !== "function") throw notA("durableProvider", "a ModelProvider", inner);
  return {
    getModel: async (name) =>
      new DurableModel(
        await inner.getModel(name),
        name === undefined || name === "" ? getDefaultModel() : name,
        options,
      ),
  };
}

/**
 * A model whose calls are decisions of the current run, for an agent that is given a model instead of a name.
 *
 * @example
 * const agent = new Agent({ name: "Treasurer", model: durableModel(model, "gpt-6") });
 */
export function durableModel(model: Model, name: string, options: DurableModelOptions = {}): Model {
  assertKnownKeys("durableModel", options, optionKeys);
  if (typeof model?.getResponse !== "function") throw notA("durableModel", "a Model of @openai/agents", model);
  return new DurableModel(model, name, options);
}

const optionKeys = [...modelOptionKeys, "provider"];

const notA = (subject: string, what: string, given: unknown): TapeError =>
  new TapeError("TAPE_BAD_INPUT", `${subject} needs ${what}, not ${shown(given)}`, { field: "model" });

type Invoke = (request: ModelRequest, context: Invocation) => Promise<ModelResponse>;

class DurableModel implements Model {
  readonly #inner: Model;
  readonly #name: string;
  readonly #options: DurableModelOptions;

  constructor(inner: Model, name: string, options: DurableModelOptions) {
    this.#inner = inner;
    this.#name = name;
    this.#options = options;
  }

  async getResponse(request: ModelRequest): Promise<ModelResponse> {
    return await this.#call(request, (sent) => this.#inner.getResponse(sent));
  }

  /** Words pass while the model produces them; everything that leads to a tool call passes after the record. */
  getStreamedResponse(request: ModelRequest): AsyncIterable<StreamEvent> {
    const live = new LiveParts<StreamEvent>();
    let passed = false;
    const invoke: Invoke = async (sent, { emit, shown }) => {
      let response: ModelResponse | undefined;
      for await (const event of this.#inner.getStreamedResponse(sent)) {
        if (event.type === "response_done") response = responseOf(event.response);
        if (event.type !== "output_text_delta") continue;
        shown();
        passed = true;
        live.push(event);
        for (const text of pieces(event.delta)) await emit({ type: "text", text });
      }
      if (response === undefined) throw brokenOff();
      return response;
    };
    const finish = (response: ModelResponse): void => {
      if (!passed) for (const delta of textsOf(response.output)) live.push({ type: "output_text_delta", delta });
      live.push({ type: "response_done", response: { ...response, id: response.responseId ?? "" } as never });
      live.end();
    };
    this.#call(request, invoke).then(finish, (error: unknown) => live.end({ error }));
    return live;
  }

  /** Tape has retried the call already. */
  getRetryAdvice(): { suggested: false; replaySafety: "unsafe"; reason: string } {
    return { suggested: false, replaySafety: "unsafe", reason: "Tape has recorded the failure of this call" };
  }

  async #call(request: ModelRequest, invoke: Invoke): Promise<ModelResponse> {
    await errorClasses.load();
    const { agent = this.#name, provider = "openai", ...options } = this.#options;
    const { systemInstructions, input, signal, tracing: _, modelSettings, tools, ...settings } = request;
    const { retry: __, ...sentSettings } = modelSettings;
    const call: ModelCall<ModelResponse> = {
      agent,
      model: `${provider}/${this.#name}`,
      messages: groupsOf(systemInstructions, input),
      toMessage: messageOf as (message: never) => ReturnType<typeof messageOf>,
      settings: { ...settingsOf(settings), ...sentSettings, tools },
      tools: tools.map(({ name }) => name),
      maxOutputTokens: modelSettings.maxTokens,
      invoke: (context) => {
        const signals = [context.abortSignal, ...(signal === undefined ? [] : [signal])];
        return invoke({ ...request, signal: AbortSignal.any(signals) }, context);
      },
      answerOf,
      restore,
      faultOf,
      revive: (failure) => errorClasses.revive(failure),
    };
    return (await modelCall(call, options)).result;
  }
}

/** Fields of later versions count too; those with an underscore are the runner's own. */
const settingsOf = (settings: object): object =>
  Object.fromEntries(Object.entries(settings).filter(([key]) => !key.startsWith("_")));

/** Without `providerData`, which is the provider's whole response once more. */
function answerOf({ output, usage, responseId, requestId, rawUsage }: ModelResponse): Answer {
  const { inputTokens: input, outputTokens, inputTokensDetails, outputTokensDetails } = usage;
  const count = (details: readonly Record<string, number>[] = [], name: string): number | undefined =>
    details[0]?.[name] || undefined;
  const parts = output.flatMap((item) => partsOf(item as never));
  const counted = defined({
    cached: count(inputTokensDetails, "cached_tokens"),
    reasoning: count(outputTokensDetails, "reasoning_tokens"),
  });
  return {
    message: { role: "assistant", parts },
    usage: input + outputTokens > 0 ? { input, output: outputTokens, ...counted } : undefined,
    finish: parts.some(({ type }) => type === "tool_call") ? "tool-calls" : "stop",
    rest: { usage: JSON.parse(JSON.stringify(usage)), ...defined({ responseId, requestId, rawUsage }) },
  };
}

function restore({ message, rest }: ModelRecord): ModelResponse {
  const { usage, ...more } = rest as Omit<ModelResponse, "output">;
  return { ...more, usage: new Usage(usage as never), output: itemsOf(message) };
}

/** The end of a stream as the response that a call without a stream would have given. */
function responseOf(done: Extract<StreamEvent, { type: "response_done" }>["response"]): ModelResponse {
  const { id, usage, output, requestId } = done;
  const counted = new Usage(usage as never);
  return { usage: counted, output: output as AgentOutputItem[], responseId: id, ...defined({ requestId }) };
}

const textsOf = (output: readonly AgentOutputItem[]): string[] =>
  output
    .filter((item) => item.type === "message" || item.type === undefined)
    .flatMap((item) => partsOf(item as never))
    .flatMap((part) => (part.type === "text" && part.text !== "" ? [part.text] : []));

const brokenOff = (): Error =>
  Object.assign(new Error("the stream of the model has ended without an answer"), { code: "ECONNRESET" });

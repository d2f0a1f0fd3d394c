import { type LanguageModel, ModelRouterLanguageModel } from "@mastra/core/llm";
import { answerOfStream } from "../ai/live-stream.ts";
import { type DurableModelOptions, durableModel as durableModelOfSdk } from "../ai/model.ts";
import type {
  CallOptions,
  Content,
  LanguageModelLike,
  ModelResult,
  PromptMessage,
  StreamResult,
} from "../ai/shapes.ts";

/** A model of Mastra's router: `"openai/gpt-6"`, or an address that is compatible with OpenAI's. */
export type RouterModel = ConstructorParameters<typeof ModelRouterLanguageModel>[0];

/**
 * A model of Mastra whose calls are decisions of the current run: recorded once, replayed without a call, retried by Tape
 * alone, and counted in the run's budget. It takes what an agent takes: an id of Mastra's router, or a model of AI SDK 5,
 * 6 or 7.
 *
 * @example
 * const agent = new Agent({ id: "treasurer", name: "Treasurer", instructions, model: durableModel("openai/gpt-6"), tools: kit.tools });
 */
export function durableModel<M extends LanguageModelLike>(model: M, options?: DurableModelOptions): M;
export function durableModel(model: RouterModel, options?: DurableModelOptions): LanguageModel;
export function durableModel(given: LanguageModelLike | RouterModel, options: DurableModelOptions = {}): unknown {
  const model = isModel(given) ? given : (new ModelRouterLanguageModel(given) as LanguageModelLike);
  const durable = durableModelOfSdk(model.specificationVersion === "v2" ? asNewer(model) : model, options);
  return {
    specificationVersion: model.specificationVersion,
    provider: model.provider,
    modelId: model.modelId,
    get supportedUrls() {
      return (model as { supportedUrls?: unknown }).supportedUrls ?? {};
    },
    doGenerate: (call: CallOptions) => durable.doGenerate(unmarked(call) as never),
    doStream: (call: CallOptions) => durable.doStream(unmarked(call) as never),
  };
}

const isModel = (model: unknown): model is LanguageModelLike =>
  typeof model !== "string" && "doGenerate" in (model as object);

/** A model of AI SDK 5 as one of AI SDK 6. Both methods of Mastra's router return a stream. */
const asNewer = (model: LanguageModelLike): LanguageModelLike => ({
  specificationVersion: "v3",
  provider: model.provider,
  modelId: model.modelId,
  doGenerate: async (call) => {
    const result = (await model.doGenerate(call)) as ModelResult | StreamResult;
    const answer = "content" in result ? result : await answerOfStream(result);
    return { ...answer, usage: newerUsage(answer.usage) };
  },
  doStream: async (call) => {
    const { stream } = (await model.doStream(call)) as StreamResult;
    const newer = new TransformStream<Content, Content>({
      transform: (part, to) => to.enqueue(part.type === "finish" ? { ...part, usage: newerUsage(part.usage) } : part),
    });
    return { stream: stream.pipeThrough(newer) };
  },
});

/** AI SDK 5 counts tokens in plain numbers. */
function newerUsage(usage: unknown): ModelResult["usage"] {
  const { inputTokens: input, outputTokens: output, cachedInputTokens, reasoningTokens } = (usage ?? {}) as Usage5;
  return {
    inputTokens: typeof input === "object" ? input : { total: input, cacheRead: cachedInputTokens },
    outputTokens: typeof output === "object" ? output : { total: output, reasoning: reasoningTokens },
  };
}

interface Usage5 {
  readonly inputTokens?: number | NonNullable<ModelResult["usage"]["inputTokens"]>;
  readonly outputTokens?: number | NonNullable<ModelResult["usage"]["outputTokens"]>;
  readonly cachedInputTokens?: number;
  readonly reasoningTokens?: number;
}

/** Mastra marks parts with times, which differ on each replay. No provider reads them. */
function unmarked(call: CallOptions): CallOptions {
  return { ...call, prompt: call.prompt.map(unmarkedMessage) };
}

function unmarkedMessage(message: PromptMessage): PromptMessage {
  const { content } = message;
  return withoutMark({ ...message, ...(typeof content !== "string" && { content: content.map(withoutMark) }) });
}

function withoutMark<T extends object>(marked: T): T {
  const { providerOptions, ...rest } = marked as T & { providerOptions?: Readonly<Record<string, unknown>> };
  if (providerOptions === undefined) return marked;
  const { mastra: _, ...others } = providerOptions;
  return { ...rest, ...(Object.keys(others).length > 0 && { providerOptions: others }) } as T;
}

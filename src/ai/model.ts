import { type Invocation, type ModelCall, type ModelOptions, modelCall, modelOptionKeys } from "../agent/model-call.ts";
import { TapeError } from "../model/errors.ts";
import { assertKnownKeys, shown } from "../sdk/validate.ts";
import { faultOf, revive } from "./errors.ts";
import { LiveStream } from "./live-stream.ts";
import { answerOf, messageOf, restored } from "./messages.ts";
import type { CallOptions, LanguageModelLike, ModelResult, StreamResult } from "./shapes.ts";

/** Options of a durable model. */
export interface DurableModelOptions extends ModelOptions {
  /**
   * true: a request with tools that the provider executes is refused, because no effect records what they do. Default
   * false.
   */
  readonly refuseProviderTools?: boolean;
}

/**
 * A model of the AI SDK whose calls are decisions of the current run: recorded once, replayed without a call, retried by
 * Tape alone, and counted in the run's budget. Use it wherever the SDK takes a model.
 *
 * @example
 * const agent = new ToolLoopAgent({ model: durableModel(openai("gpt-6")), tools: kit.tools });
 */
export function durableModel<M extends LanguageModelLike>(model: M, options: DurableModelOptions = {}): M {
  assertModel("durableModel", model, ["doGenerate", "doStream"]);
  const { refuseProviderTools = false, ...callOptions } = options;
  assertKnownKeys("durableModel", options, [...modelOptionKeys, "refuseProviderTools"]);
  const { specificationVersion, provider, modelId } = model;
  const calls = new ModelCalls(model, callOptions, refuseProviderTools);
  const durable = {
    specificationVersion,
    provider,
    modelId,
    get supportedUrls() {
      return (model as { supportedUrls?: unknown }).supportedUrls ?? {};
    },
    doGenerate: (call: CallOptions) => calls.generate(call),
    doStream: (call: CallOptions) => calls.stream(call),
  };
  return durable as unknown as M;
}

/** Models are objects in AI SDK 6 and 7; a text names one of the gateway, which has to be made an object first. */
export function assertModel(what: string, model: unknown, methods: readonly string[]): void {
  const version = (model as { specificationVersion?: unknown } | null)?.specificationVersion;
  const has = (method: string): boolean => typeof (model as Record<string, unknown>)[method] === "function";
  if (typeof model === "object" && (version === "v3" || version === "v4") && methods.every(has)) return;
  const hint = typeof model === "string" ? ": pass a model of a provider, for instance gateway(name)" : "";
  throw new TapeError("TAPE_BAD_INPUT", `${what} needs a model of AI SDK 6 or 7, not ${shown(model)}${hint}`, {
    field: "model",
  });
}

type Invoke = (context: Invocation, options: CallOptions) => Promise<ModelResult>;

class ModelCalls {
  readonly #model: LanguageModelLike;
  readonly #options: ModelOptions;
  readonly #refuseProviderTools: boolean;

  constructor(model: LanguageModelLike, options: ModelOptions, refuseProviderTools: boolean) {
    this.#model = model;
    this.#options = options;
    this.#refuseProviderTools = refuseProviderTools;
  }

  async generate(call: CallOptions): Promise<ModelResult> {
    const invoke: Invoke = (_, options) => this.#model.doGenerate(options as never) as Promise<ModelResult>;
    return (await modelCall(this.#callOf(call, invoke), this.#options)).result;
  }

  /** Resolves with the first word or the whole answer, so that a call that fails before rejects as the SDK expects. */
  async stream(call: CallOptions): Promise<StreamResult> {
    const live = new LiveStream();
    const invoke: Invoke = async (context, options) =>
      await live.read((await this.#model.doStream(options as never)) as StreamResult, context);
    const made = modelCall(this.#callOf(call, invoke), this.#options).then(({ result }) => live.finish(result));
    made.catch((error: unknown) => live.fail(error));
    await Promise.race([live.started, made]);
    return { stream: live.stream };
  }

  #callOf(call: CallOptions, invoke: Invoke): ModelCall<ModelResult> {
    const { prompt, abortSignal, headers: _, includeRawChunks: __, tools = [], ...settings } = call;
    const { provider, modelId } = this.#model;
    const { maxOutputTokens } = call;
    this.#assertTools(tools);
    return {
      agent: this.#options.agent ?? modelId,
      model: `${provider}/${modelId}`,
      messages: prompt,
      toMessage: messageOf as (message: never) => ReturnType<typeof messageOf>,
      settings,
      tools: tools.map(({ name }) => name),
      definitions: tools,
      maxOutputTokens,
      invoke: (context) => {
        const signals = [context.abortSignal, ...(abortSignal === undefined ? [] : [abortSignal])];
        return invoke(context, { ...call, abortSignal: AbortSignal.any(signals) });
      },
      answerOf,
      restore: restored,
      faultOf,
      revive,
    };
  }

  #assertTools(tools: NonNullable<CallOptions["tools"]>): void {
    const outside = this.#refuseProviderTools ? tools.find(({ type }) => type !== "function") : undefined;
    if (outside === undefined) return;
    throw new TapeError("TAPE_BAD_INPUT", `the provider executes ${outside.name}, and refuseProviderTools forbids it`, {
      field: "tools",
    });
  }
}

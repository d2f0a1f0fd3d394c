import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { type AIMessage, AIMessageChunk, type BaseMessage, convertToChunk } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import { type Invocation, type ModelCall, type ModelOptions, modelCall, modelOptionKeys } from "../agent/model-call.ts";
import { type Random, systemRandom } from "../base/random.ts";
import { TapeError } from "../model/errors.ts";
import { assertKnownKeys, shown } from "../sdk/validate.ts";
import { faultOf, revive } from "./errors.ts";
import { answerOf, messageOf, restored } from "./messages.ts";
import { type Caller, inTaskLane } from "./task-lane.ts";
import { Words } from "./words.ts";

/** What is used of the options of a call. Their other fields are the provider's. */
interface CallOptions {
  readonly signal?: AbortSignal;
  readonly tools?: readonly { readonly name?: string; readonly function?: { readonly name?: string } }[];
  readonly [key: string]: unknown;
}

type CallbackRun = Caller & {
  handleLLMNewToken?(token: string, ...rest: unknown[]): Promise<void>;
};

/**
 * A chat model whose calls are decisions of the current run: recorded once, replayed without a call, counted in the run's
 * budget. Use it wherever LangChain takes a chat model.
 *
 * @example
 * const graph = createAgent({ model: durableChat(new ChatOpenAI({ model: "gpt-6" })), tools: kit.tools });
 */
export function durableChat<M extends BaseChatModel>(model: M, options: ModelOptions = {}): M {
  if (!(model instanceof BaseChatModel)) {
    throw new TapeError("TAPE_BAD_INPUT", `durableChat needs a chat model of LangChain, not ${shown(model)}`, {
      field: "model",
    });
  }
  assertKnownKeys("durableChat", options, modelOptionKeys);
  return wrapped(model, options);
}

/** Providers copy a model when tools or settings are bound to it: the copy is wrapped, too. */
function wrapped<M extends BaseChatModel>(model: M, options: ModelOptions): M {
  const calls = new ChatCalls(model, options);
  const again = (bound: unknown): unknown =>
    bound instanceof BaseChatModel && !durable.has(bound) ? wrapped(bound, options) : bound;
  const own: Record<string, (...args: never[]) => unknown> = {
    _generate: (messages: BaseMessage[], call: CallOptions, callbacks?: CallbackRun) =>
      calls.generate(messages, call, callbacks),
    _streamResponseChunks: (messages: BaseMessage[], call: CallOptions, callbacks?: CallbackRun) =>
      calls.stream(messages, call, callbacks),
    // The bridge over _streamResponseChunks, in place of a provider's own.
    _streamChatModelEvents: BaseChatModel.prototype._streamChatModelEvents,
  };
  for (const name of ["withConfig", "bindTools"] as const) {
    const bind = model[name] as ((this: unknown, ...args: unknown[]) => unknown) | undefined;
    if (bind !== undefined) own[name] = (...args: unknown[]) => again(bind.apply(copy, args));
  }
  const copy = Object.create(
    model,
    Object.fromEntries(
      Object.entries(own).map(([name, value]) => [name, { value, writable: true, configurable: true }]),
    ),
  ) as M;
  durable.add(copy);
  return copy;
}

const durable = new WeakSet<object>();

type Ask = (context: Invocation, options: CallOptions) => Promise<AIMessage>;

class ChatCalls {
  readonly #model: BaseChatModel;
  readonly #options: ModelOptions;
  readonly #random: Random = systemRandom;

  constructor(model: BaseChatModel, options: ModelOptions) {
    this.#model = model;
    this.#options = options;
  }

  async generate(messages: BaseMessage[], call: CallOptions, callbacks?: CallbackRun): Promise<ChatResult> {
    const { result: message } = await this.#ask(messages, call, callbacks, async (_, options) => {
      const { generations } = await this.#model._generate(messages, options as never, callbacks as never);
      return generations[0]!.message as AIMessage;
    });
    return { generations: [{ text: message.text, message }] };
  }

  /**
   * Words are passed on while the model produces them. Everything else follows when the answer is recorded, so that no
   * tool runs for a call that a replay would not find.
   */
  async *stream(
    messages: BaseMessage[],
    call: CallOptions,
    callbacks?: CallbackRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const words = new Words();
    const answer = this.#ask(messages, call, callbacks, async (context, options) => {
      let whole: AIMessageChunk | undefined;
      const chunks = this.#model._streamResponseChunks(messages, options as never, callbacks as never);
      for await (const { message } of chunks) {
        const chunk = message as AIMessageChunk;
        whole = whole === undefined ? chunk : whole.concat(chunk);
        await words.take(chunk, context);
      }
      if (whole === undefined) throw Object.assign(new Error("the model sent nothing"), { code: "ECONNRESET" });
      return whole;
    });
    const ended = (): void => words.end();
    answer.then(ended, ended);
    for await (const text of words) yield generationOf(new AIMessageChunk({ content: text }));
    const { result, replayed } = await answer;
    const chunk = convertToChunk(result) as AIMessageChunk;
    // The model, which calls listeners back, is not called by a replay.
    if (replayed && chunk.text !== "") await callbacks?.handleLLMNewToken?.(chunk.text);
    const left = typeof chunk.content === "string" ? chunk.content.slice(words.passed) : chunk.content;
    yield generationOf(new AIMessageChunk({ ...chunk, content: left } as never));
  }

  #ask(messages: BaseMessage[], call: CallOptions, callbacks: CallbackRun | undefined, ask: Ask) {
    return inTaskLane(callbacks ?? {}, () => modelCall(this.#callOf(messages, call, ask), this.#options));
  }

  #callOf(messages: BaseMessage[], call: CallOptions, ask: Ask): ModelCall<AIMessage> {
    const { signal, tools = [], ...settings } = call;
    const { ls_provider = "langchain", ls_model_name, ls_max_tokens } = this.#model.getLsParams(call as never);
    const name = ls_model_name ?? this.#model._llmType();
    return {
      agent: this.#options.agent ?? name,
      model: `${ls_provider}/${name}`,
      messages,
      toMessage: messageOf,
      settings: jsonOf(settings),
      tools: tools.map((tool) => tool.function?.name ?? tool.name ?? "tool"),
      definitions: jsonOf(tools),
      maxOutputTokens: ls_max_tokens,
      invoke: async (context) => {
        const signals = [context.abortSignal, ...(signal === undefined ? [] : [signal])];
        const message = await ask(context, { ...call, signal: AbortSignal.any(signals) });
        // LangChain gives a message without an id a random one, which the record then would not have.
        if (message.id === undefined) message._updateId(`run-${this.#random.uuid()}`);
        return message;
      },
      answerOf,
      restore: restored,
      faultOf,
      revive,
    };
  }
}

const generationOf = (message: AIMessageChunk): ChatGenerationChunk =>
  new ChatGenerationChunk({ text: message.text, message });

/** Settings and tools may hold schemas, functions and other things of this process. */
function jsonOf(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value));
  } catch {
    return undefined;
  }
}

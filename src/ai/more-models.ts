import type { Message, ModelRecord } from "../agent/conversation.ts";
import { type ModelCall, type ModelOptions, modelCall, modelOptionKeys } from "../agent/model-call.ts";
import type { Usage } from "../agent/price.ts";
import { assertKnownKeys } from "../sdk/validate.ts";
import { faultOf, revive } from "./errors.ts";
import { assertModel } from "./model.ts";

/** A model of the SDK with one method. */
interface OtherModel {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
}
type Call = Readonly<Record<string, unknown>> & { readonly abortSignal?: AbortSignal };
type Result = Readonly<Record<string, unknown>>;

/**
 * An embedding model whose calls are recorded once. Vectors are long: 1 000 of 1 536 numbers take about 30 MB as text,
 * more than a record holds, so embed a corpus in steps of its own.
 *
 * @example
 * const model = durableEmbedding(embeddings);
 */
export function durableEmbedding<M extends OtherModel>(model: M, options: ModelOptions = {}): M {
  return durableCalls("durableEmbedding", model, options, "doEmbed", {
    request: ({ values }) => values,
    usage: ({ usage }) => ({ input: (usage as { tokens?: number } | undefined)?.tokens ?? 0, output: 0 }),
  });
}

/**
 * An image model whose calls are recorded once. An answer with more than 32 MiB is refused with TAPE_TOO_LARGE.
 *
 * @example
 * const model = durableImage(images);
 */
export function durableImage<M extends OtherModel>(model: M, options: ModelOptions = {}): M {
  return durableCalls("durableImage", model, options, "doGenerate", {
    request: ({ prompt }) => prompt,
    usage: ({ usage }) => {
      const { inputTokens = 0, outputTokens = 0 } = (usage ?? {}) as { inputTokens?: number; outputTokens?: number };
      return { input: inputTokens, output: outputTokens };
    },
  });
}

interface ResultReader {
  readonly request: (call: Call) => unknown;
  readonly usage: (result: Result) => Usage;
}

function durableCalls<M extends OtherModel>(
  what: string,
  model: M,
  options: ModelOptions,
  method: string,
  { request, usage }: ResultReader,
): M {
  assertModel(what, model, [method]);
  assertKnownKeys(what, options, modelOptionKeys);
  const { provider, modelId } = model;
  const callOf = ({ abortSignal, headers: _, ...call }: Call): ModelCall<Result> => ({
    agent: options.agent ?? modelId,
    model: `${provider}/${modelId}`,
    messages: [call],
    toMessage: (message: never): Message => ({
      role: "user",
      parts: [{ type: "text", text: JSON.stringify(request(message)) ?? "" }],
    }),
    maxOutputTokens: 0,
    invoke: (context) => {
      const signals = [context.abortSignal, ...(abortSignal === undefined ? [] : [abortSignal])];
      const invoked = (model as unknown as Record<string, (call: Call) => Promise<Result>>)[method]!;
      return invoked.call(model, { ...call, abortSignal: AbortSignal.any(signals) });
    },
    answerOf: ({ response, ...result }) => {
      const { headers: __, body: ___, ...about } = (response ?? {}) as Result;
      return { message: { role: "assistant", parts: [] }, usage: usage(result), rest: { ...result, response: about } };
    },
    restore: ({ rest }: ModelRecord) => rest as Result,
    faultOf,
    revive,
  });
  const durable = new Proxy(model, {
    get: (target, key) =>
      key === method
        ? async (call: Call) => (await modelCall(callOf(call), options)).result
        : Reflect.get(target, key, target),
  });
  return durable;
}

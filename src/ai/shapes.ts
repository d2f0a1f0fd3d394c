/*
 * The parts of the AI SDK's model specification (v3 of AI SDK 6, v4 of AI SDK 7) that Tape reads. A model is an object,
 * so nothing of `ai` is imported: the types are structural, and a field that is not named here is kept as it is.
 */

/** A language model of AI SDK 6 or 7. */
export interface LanguageModelLike {
  /** The version of the SDK's interface. */
  readonly specificationVersion: string;
  /** The name of the provider. */
  readonly provider: string;
  /** The name of the model. */
  readonly modelId: string;
  /** Answers a request at once. */
  doGenerate(options: never): PromiseLike<unknown>;
  /** Answers a request in parts. */
  doStream(options: never): PromiseLike<unknown>;
}

/** A message or a part of one, as the SDK sends it to a model and receives it. */
export interface Content {
  /** The type of the chunk. */
  readonly type: string;
  /** Fields of this type of chunk. */
  readonly [field: string]: unknown;
}

export interface PromptMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string | readonly Content[];
}

export interface CallOptions {
  readonly prompt: readonly PromptMessage[];
  readonly maxOutputTokens?: number;
  readonly tools?: readonly { readonly type: string; readonly name: string }[];
  readonly abortSignal?: AbortSignal;
  readonly headers?: unknown;
  readonly includeRawChunks?: boolean;
}

export interface ModelUsage {
  readonly inputTokens?: {
    readonly total?: number | undefined;
    readonly cacheRead?: number | undefined;
    readonly cacheWrite?: number | undefined;
  };
  readonly outputTokens?: { readonly total?: number | undefined; readonly reasoning?: number | undefined };
}

/** The result of `doGenerate`, and of a stream that has ended. */
export interface ModelResult {
  readonly content: readonly Content[];
  readonly finishReason: { readonly unified?: string } | string;
  readonly usage: ModelUsage;
  readonly warnings?: readonly unknown[];
  readonly providerMetadata?: unknown;
  readonly structuredOutputText?: string;
  readonly response?: { readonly id?: string; readonly timestamp?: Date; readonly modelId?: string };
}

export interface StreamResult {
  readonly stream: ReadableStream<Content>;
}

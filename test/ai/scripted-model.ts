/** A turn of the script: words, and calls of tools. */
export interface Turn {
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls?: readonly { readonly id: string; readonly tool: string; readonly input: unknown }[];
}

interface Options {
  readonly prompt: readonly { readonly role: string; readonly content: unknown }[];
  readonly abortSignal?: AbortSignal;
}

/** Decides by the conversation alone, as a model does: the same prompt gets the same answer. */
export type Script = (turn: number, prompt: Options["prompt"]) => Turn | Promise<Turn>;

/** A language model of the specification v3 or v4 that follows a script. */
export class ScriptedLanguageModel {
  readonly specificationVersion: "v3" | "v4";
  readonly provider = "local";
  readonly modelId: string;
  readonly supportedUrls = {};
  calls = 0;
  prompts: Options["prompt"][] = [];
  readonly #script: Script;

  constructor(version: "v3" | "v4", script: Script, modelId = "scripted") {
    this.specificationVersion = version;
    this.#script = script;
    this.modelId = modelId;
  }

  async doGenerate(options: Options) {
    const turn = await this.#turn(options);
    return { content: contentOf(turn), finishReason: finishOf(turn), usage, warnings: [] };
  }

  async doStream(options: Options) {
    const turn = await this.#turn(options);
    const parts = [...partsOf(turn)];
    const stream = new ReadableStream({
      pull(controller) {
        const next = parts.shift();
        if (next === undefined) controller.close();
        else controller.enqueue(next);
      },
    });
    return { stream };
  }

  /** The number of the turn is the number of answers in the prompt: a model has no other memory. */
  async #turn({ prompt }: Options): Promise<Turn> {
    this.calls++;
    this.prompts.push(prompt);
    const turn = 1 + prompt.filter(({ role }) => role === "assistant").length;
    return await this.#script(turn, prompt);
  }
}

const usage = {
  inputTokens: { total: 20, noCache: 20, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 10, text: 10, reasoning: 0 },
};

const finishOf = ({ calls = [] }: Turn) => {
  const unified = calls.length > 0 ? ("tool-calls" as const) : ("stop" as const);
  return { unified, raw: unified };
};

function contentOf({ text, reasoning, calls = [] }: Turn) {
  return [
    ...(reasoning === undefined ? [] : [{ type: "reasoning" as const, text: reasoning }]),
    ...(text === undefined ? [] : [{ type: "text" as const, text }]),
    ...calls.map(({ id, tool, input }) => ({
      type: "tool-call" as const,
      toolCallId: id,
      toolName: tool,
      input: JSON.stringify(input),
    })),
  ];
}

function* partsOf(turn: Turn) {
  yield { type: "stream-start" as const, warnings: [] };
  for (const [k, part] of contentOf(turn).entries()) {
    if (part.type === "tool-call") {
      yield { type: "tool-input-start" as const, id: part.toolCallId, toolName: part.toolName };
      yield { type: "tool-input-delta" as const, id: part.toolCallId, delta: part.input };
      yield { type: "tool-input-end" as const, id: part.toolCallId };
      yield part;
      continue;
    }
    const { type, text } = part;
    const id = String(k);
    yield { type: `${type}-start` as const, id };
    for (const word of text.split(/(?<= )/)) yield { type: `${type}-delta` as const, id, delta: word };
    yield { type: `${type}-end` as const, id };
  }
  yield { type: "finish" as const, finishReason: finishOf(turn), usage };
}

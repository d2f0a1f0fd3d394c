import { BaseLlm, type BaseLlmConnection, type LlmRequest, type LlmResponse } from "@google/adk";
import type { Script, Seen } from "../../agents/framework.ts";

const usageMetadata = { promptTokenCount: 20, candidatesTokenCount: 10, totalTokenCount: 30 };

/** A model of the framework that follows a script. Calls have no ids, as with Gemini. */
export class ScriptedLlm extends BaseLlm {
  readonly #script: Script;
  readonly #ids: boolean;

  constructor(script: Script, { ids = true } = {}) {
    super({ model: "scripted" });
    this.#script = script;
    this.#ids = ids;
  }

  override async *generateContentAsync(request: LlmRequest, stream = false): AsyncGenerator<LlmResponse, void> {
    const { text, calls = [] } = await this.#script(seen(request));
    if (stream) {
      for (const piece of text?.match(/.{1,4}/g) ?? []) {
        yield { partial: true, content: { role: "model", parts: [{ text: piece }] } };
      }
    }
    const parts = [
      ...(text === undefined ? [] : [{ text }]),
      ...calls.map(({ id, tool: name, input: args }) => ({ functionCall: { ...(this.#ids && { id }), name, args } })),
    ];
    yield { content: { role: "model", parts }, usageMetadata, turnComplete: true };
  }

  override connect(): Promise<BaseLlmConnection> {
    return Promise.reject(new Error("not used"));
  }
}

function seen({ contents }: LlmRequest): Seen {
  const parts = contents.flatMap(({ role, parts = [] }) => parts.map((part) => ({ role, ...part })));
  const prompt = parts.filter(({ role, text }) => role === "user" && text !== undefined);
  const results = parts.flatMap(({ functionResponse }) => {
    if (functionResponse === undefined) return [];
    const { id = "", response = {} } = functionResponse;
    const { result } = response;
    return [{ id, output: typeof result === "string" ? result : JSON.stringify(response) }];
  });
  return { prompt: prompt.at(0)?.text ?? "", results };
}

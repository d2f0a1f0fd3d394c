import type { AgentInputItem, Model, ModelProvider, ModelRequest, ModelResponse, StreamEvent } from "@openai/agents";
import { Usage } from "@openai/agents";
import { assistantMessage, functionCall } from "@openai/agents-core/testing";
import type { Script, Seen } from "../../agents/framework.ts";

const usage = () => new Usage({ requests: 1, inputTokens: 20, outputTokens: 10, totalTokens: 30 });

/** A model of the framework that follows a script. */
export class ScriptedModel implements Model, ModelProvider {
  readonly requests: ModelRequest[] = [];
  readonly #script: Script;

  constructor(script: Script) {
    this.#script = script;
  }

  getModel(): Model {
    return this;
  }

  async getResponse(request: ModelRequest): Promise<ModelResponse> {
    this.requests.push(request);
    const { text, calls = [] } = await this.#script(seen(request.input));
    const output = [
      ...(text === undefined ? [] : [assistantMessage(text)]),
      ...calls.map(({ id, tool, input }) => functionCall(tool, input, { callId: id })),
    ];
    return { usage: usage(), output, responseId: `resp-${this.requests.length}` };
  }

  async *getStreamedResponse(request: ModelRequest): AsyncIterable<StreamEvent> {
    const { output, responseId } = await this.getResponse(request);
    yield { type: "response_started" };
    for (const item of output) {
      if (item.type !== "message" || item.role !== "assistant") continue;
      const [content] = item.content;
      if (content?.type !== "output_text") continue;
      for (const delta of content.text.match(/.{1,4}/g) ?? []) yield { type: "output_text_delta", delta };
    }
    const counted = { requests: 1, inputTokens: 20, outputTokens: 10, totalTokens: 30 };
    yield { type: "response_done", response: { id: responseId!, usage: counted, output: output as never } };
  }
}

export function seen(input: string | readonly AgentInputItem[]): Seen {
  if (typeof input === "string") return { prompt: input, results: [] };
  const users = input.filter((item) => "role" in item && item.role === "user") as { content: unknown }[];
  const results = input.flatMap((item) => {
    if (item.type !== "function_call_result") return [];
    const { output } = item;
    const text = typeof output === "string" ? output : "text" in output ? String(output.text) : JSON.stringify(output);
    return [{ id: item.callId, output: text }];
  });
  const { content } = users.at(-1) ?? { content: "" };
  return { prompt: typeof content === "string" ? content : JSON.stringify(content), results };
}

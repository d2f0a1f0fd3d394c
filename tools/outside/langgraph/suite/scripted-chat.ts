import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel, type BindToolsInput } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";

/** An answer: words, and calls of tools. */
export interface Answer {
  readonly text?: string;
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly args: Record<string, unknown> }[];
}

type Script = (messages: readonly BaseMessage[], call: number) => Answer | Promise<Answer>;

/** A model of LangChain that answers by a function, whole or word by word. It counts its calls. */
export class ScriptedChat extends BaseChatModel {
  static calls = 0;
  readonly answer: Script;
  readonly bound: readonly string[];

  /** Called after each word of a stream, with its number. */
  readonly onWord: (word: number) => void;

  constructor(fields: { answer: Script; bound?: readonly string[]; onWord?: (word: number) => void }) {
    super({});
    this.answer = fields.answer;
    this.onWord = fields.onWord ?? (() => {});
    this.bound = fields.bound ?? [];
  }

  _llmType(): string {
    return "scripted";
  }

  /** Returns a new model, as those of providers do: a wrapper has to survive it. */
  override bindTools(tools: BindToolsInput[]): ScriptedChat {
    const { answer, onWord } = this;
    return new ScriptedChat({ answer, onWord, bound: tools.map((tool) => String((tool as { name: string }).name)) });
  }

  async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const { text = "", calls = [] } = await this.answer(messages, ++ScriptedChat.calls);
    const usage_metadata = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
    const response_metadata = { finish_reason: calls.length > 0 ? "tool_calls" : "stop" };
    const tool_calls = calls.map((call) => ({ ...call, type: "tool_call" as const }));
    const message = new AIMessage({ content: text, usage_metadata, response_metadata, tool_calls } as never);
    return { generations: [{ text, message }] };
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    _: this["ParsedCallOptions"],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const { text = "", calls = [] } = await this.answer(messages, ++ScriptedChat.calls);
    for (const [k, word] of text
      .split(/(?<= )/)
      .filter(Boolean)
      .entries()) {
      yield new ChatGenerationChunk({ text: word, message: new AIMessageChunk({ content: word }) });
      await manager?.handleLLMNewToken(word);
      this.onWord(k + 1);
    }
    for (const [index, { id, name, args }] of calls.entries()) {
      const json = JSON.stringify(args);
      for (const [k, part] of [json.slice(0, 3), json.slice(3)].entries()) {
        const tool_call_chunks = [
          { index, args: part, type: "tool_call_chunk" as const, ...(k === 0 ? { id, name } : {}) },
        ];
        yield new ChatGenerationChunk({ text: "", message: new AIMessageChunk({ content: "", tool_call_chunks }) });
      }
    }
    const message = new AIMessageChunk({
      content: "",
      usage_metadata: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
      response_metadata: { finish_reason: calls.length > 0 ? "tool_calls" : "stop" },
    } as never);
    yield new ChatGenerationChunk({ text: "", message });
  }
}

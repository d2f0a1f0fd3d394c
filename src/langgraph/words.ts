import type { AIMessageChunk } from "@langchain/core/messages";
import { LiveParts, pieces } from "../agent/live-parts.ts";
import type { Invocation } from "../agent/model-call.ts";

/** Words of an answer that are passed on before it is recorded. From the first part that is no word, everything waits. */
export class Words extends LiveParts<string> {
  /** Characters that were passed on. */
  passed = 0;
  #held = false;

  async take(chunk: AIMessageChunk, { emit, shown }: Invocation): Promise<void> {
    const { content, text } = chunk;
    if (typeof content !== "string" || (chunk.tool_call_chunks ?? []).length > 0) this.#held = true;
    if (text === "") return;
    if (!this.#held) {
      shown();
      this.passed += text.length;
      this.push(text);
    }
    for (const piece of pieces(text)) await emit({ type: "text", text: piece });
  }
}

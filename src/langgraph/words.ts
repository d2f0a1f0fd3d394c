import type { AIMessageChunk } from "@langchain/core/messages";
import type { Invocation } from "../agent/model-call.ts";

/** Words of an answer that are passed on before it is recorded. From the first part that is no word, everything waits. */
export class Words {
  /** Characters that were passed on. */
  passed = 0;
  #held = false;
  #ended = false;
  readonly #queue: string[] = [];
  #wake = (): void => {};

  async take(chunk: AIMessageChunk, { emit, shown }: Invocation): Promise<void> {
    const { content } = chunk;
    if (typeof content !== "string" || (chunk.tool_call_chunks ?? []).length > 0) this.#held = true;
    const text = chunk.text;
    if (text === "") return;
    if (!this.#held) {
      shown();
      this.passed += text.length;
      this.#queue.push(text);
      this.#wake();
    }
    await emit({ type: "text", text });
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for (;;) {
      const next = this.#queue.shift();
      if (next !== undefined) yield next;
      else if (this.#ended) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}

import type { Message } from "../../src/agent/conversation.ts";
import { type Invocation, type ModelCall, type ModelOptions, modelCall } from "../../src/agent/model-call.ts";
import type { Usage } from "../../src/agent/price.ts";

/** An error of a model's provider, as adapters see one. */
export class ProviderError extends Error {
  readonly status: number;
  readonly retryAfterMs: number | undefined;

  constructor(status: number, retryAfterMs?: number) {
    super(`status ${status}`);
    this.name = "ProviderError";
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

export const user = (text: string): Message => ({ role: "user", parts: [{ type: "text", text }] });
export const assistant = (text: string): Message => ({ role: "assistant", parts: [{ type: "text", text }] });

/** A model without a framework: it answers by a function, and its messages are neutral already. */
export class ScriptedModel {
  calls = 0;
  readonly #answer: (call: number, context: Invocation) => Message | Promise<Message>;
  usage: Usage | undefined = { input: 10, output: 5 };

  constructor(answer: (call: number, context: Invocation) => Message | Promise<Message>) {
    this.#answer = answer;
  }

  async ask(messages: readonly Message[], options: ModelOptions = {}, agent = "clerk"): Promise<Message> {
    const { result } = await modelCall(this.call(messages, agent), options);
    return result;
  }

  call(messages: readonly Message[], agent: string): ModelCall<Message> {
    return {
      agent,
      model: "local/scripted",
      messages,
      toMessage: (message: never) => message,
      maxOutputTokens: 100,
      invoke: (context) => Promise.resolve(this.#answer(++this.calls, context)),
      answerOf: (message) => ({ message, usage: this.usage, finish: "stop" }),
      restore: ({ message }) => message,
      faultOf: (error) => {
        const { status, retryAfterMs } = error as ProviderError;
        return { retry: status === 429 || status >= 500, retryAfterMs, facts: { status } };
      },
      revive: ({ facts }) => new ProviderError(facts.status as number),
    };
  }
}

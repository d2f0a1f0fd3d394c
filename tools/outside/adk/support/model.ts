import { BaseLlm, type BaseLlmConnection, type LlmRequest, type LlmResponse } from "@google/adk";

const invoice = "7";
const answers = [
  [{ text: "I look it up." }, { functionCall: { name: "search", args: { invoice } } }],
  [{ functionCall: { name: "pay", args: { invoice, amount: 250 } } }],
];

class ScriptedLlm extends BaseLlm {
  override async *generateContentAsync({ contents }: LlmRequest): AsyncGenerator<LlmResponse, void> {
    const turn = contents.filter(({ role }) => role === "model").length;
    const last = [{ text: `Invoice 7 is paid, after ${contents.length} messages.` }];
    yield { content: { role: "model", parts: answers[turn] ?? last } };
  }

  override connect(): Promise<BaseLlmConnection> {
    return Promise.reject(new Error("not used"));
  }
}

export const model = new ScriptedLlm({ model: "scripted" });

import type { ModelProvider } from "@openai/agents";
import { assistantMessage, functionCall, modelResponder, ScriptedModel } from "@openai/agents-core/testing";

const invoice = "7";
const model = new ScriptedModel([
  [assistantMessage("I look it up."), functionCall("search", { invoice }, { callId: "call-1" })],
  [functionCall("pay", { invoice, amount: 250 }, { callId: "call-2" })],
  modelResponder(({ request }) => [assistantMessage(`Invoice 7 is paid, after ${request.input.length} items.`)]),
]);

export const provider: ModelProvider = { getModel: () => model };

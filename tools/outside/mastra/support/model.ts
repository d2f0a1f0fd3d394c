import type { LanguageModelV4, LanguageModelV4Content, LanguageModelV4GenerateResult } from "@ai-sdk/provider";

const call = (id: string, toolName: string, input: object): LanguageModelV4Content => ({
  ...{ type: "tool-call", toolCallId: id, toolName, input: JSON.stringify(input) },
});
const turns: LanguageModelV4Content[][] = [
  [{ type: "text", text: "I look it up." }, call("call-1", "search", { invoice: "7" })],
  [call("call-2", "pay", { invoice: "7", amount: 250 })],
];

export const model: LanguageModelV4 = {
  ...{ specificationVersion: "v4", provider: "local", modelId: "scripted", supportedUrls: {} },
  doGenerate: async ({ prompt }): Promise<LanguageModelV4GenerateResult> => {
    const content = turns[prompt.filter(({ role }) => role === "assistant").length];
    const unified = content === undefined ? "stop" : "tool-calls";
    return {
      content: content ?? [{ type: "text", text: `Invoice 7 is paid, after ${prompt.length} messages.` }],
      finishReason: { unified, raw: unified },
      usage: {
        inputTokens: { total: 20, noCache: 20, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 10, text: 10, reasoning: 0 },
      },
      warnings: [],
    };
  },
  doStream: () => Promise.reject(new Error("not used")),
};

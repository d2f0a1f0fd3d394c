import { MockLanguageModelV4 } from "ai/test";

const usage = {
  inputTokens: { total: 20, noCache: 20, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 10, text: 10, reasoning: 0 },
};
const call = {
  type: "tool-call",
  toolCallId: "call-1",
  toolName: "pay",
  input: '{"invoice":"117","amount":250}',
} as const;

/** Pays, then reports what the tool has returned. */
export const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const last = prompt.at(-1)!;
    const paid = last.role === "tool" ? JSON.stringify(last.content[0]) : undefined;
    const unified = paid === undefined ? "tool-calls" : "stop";
    const text = { type: "text", text: `Paid: ${/r-\d+/.exec(paid ?? "")?.[0]}` } as const;
    return {
      content: [paid === undefined ? call : text],
      finishReason: { unified, raw: unified },
      usage,
      warnings: [],
    };
  },
});

import { type Clock, systemClock } from "../../../base/clock.ts";

/** A call of the model, as its provider would log it. */
export interface ScriptedCall {
  readonly turn: number;
  /** The words that the caller has received. */
  readonly words: number;
}

interface CallOptions {
  readonly prompt: readonly { readonly role: string }[];
}

const wire = { invoice: "2026-117", amount: 250_000 };

/** What the agent says and does. The turn is the number of answers in the prompt: a model has no other memory. */
const script = [
  { text: "I look up the invoice first.", tool: { id: "call-1", name: "search", input: { query: "2026-117" } } },
  {
    text: "It is due today, so I wire 250,000 to the supplier now.",
    tool: { id: "call-2", name: "wire", input: wire },
  },
  { text: "Done. Invoice 2026-117 is paid, and the receipt is in the books.", tool: undefined },
] as const;

const wordMs = 60;
const tokens = { input: 120, output: 30 };
const usage = {
  inputTokens: { total: tokens.input, noCache: tokens.input, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: tokens.output, text: tokens.output, reasoning: 0 },
};

/**
 * A language model of the AI SDK (specification v4) that follows a script and needs no network. `onWord` is called after
 * each word; the answer continues when it resolves.
 */
export function scriptedModel(
  onCall: (turn: number) => void,
  onWord: (call: ScriptedCall) => Promise<void>,
  clock: Pick<Clock, "sleep"> = systemClock,
) {
  const doStream = async ({ prompt }: CallOptions) => {
    const turn = 1 + prompt.filter(({ role }) => role === "assistant").length;
    onCall(turn);
    return { stream: ReadableStream.from(partsOf(turn, onWord, clock)) };
  };
  const doGenerate = (): never => {
    throw new Error("the scripted model only streams");
  };
  return {
    specificationVersion: "v4",
    provider: "local",
    modelId: "scripted",
    supportedUrls: {},
    doGenerate,
    doStream,
  };
}

async function* partsOf(turn: number, onWord: (call: ScriptedCall) => Promise<void>, clock: Pick<Clock, "sleep">) {
  const { text, tool } = script[turn - 1] ?? script[2];
  yield { type: "stream-start", warnings: [] };
  yield { type: "text-start", id: "0" };
  for (const [k, word] of text.split(/(?<= )/).entries()) {
    await clock.sleep(wordMs);
    yield { type: "text-delta", id: "0", delta: word };
    await onWord({ turn, words: k + 1 });
  }
  yield { type: "text-end", id: "0" };
  if (tool !== undefined) {
    yield { type: "tool-call", toolCallId: tool.id, toolName: tool.name, input: JSON.stringify(tool.input) };
  }
  const unified = tool === undefined ? "stop" : "tool-calls";
  yield { type: "finish", finishReason: { unified, raw: unified }, usage };
}

import type { LanguageModelV4 } from "@ai-sdk/provider";
import { ScriptedLanguageModel } from "../../../../test/ai/scripted-model.ts";
import type { Script, Seen } from "../../agents/framework.ts";

interface Part {
  readonly type: string;
  readonly text?: string;
  readonly toolCallId?: string;
  readonly output?: { readonly type: string; readonly value: unknown };
}
interface Message {
  readonly role: string;
  readonly content: unknown;
}

/** A model of the AI SDK that follows a script. */
export const scriptedModel = (script: Script, version: "v3" | "v4" = "v4"): LanguageModelV4 =>
  new ScriptedLanguageModel(version, (_, prompt) => script(seen(prompt))) as unknown as LanguageModelV4;

function seen(prompt: readonly Message[]): Seen {
  const parts = prompt.flatMap(({ role, content }) =>
    Array.isArray(content) ? (content as Part[]).map((part) => ({ role, ...part })) : [],
  );
  const words = parts.filter(({ role, type }) => role === "user" && type === "text");
  const results = parts.flatMap(({ type, toolCallId = "", output }) =>
    type === "tool-result" ? [{ id: toolCallId, output: textOf(output?.value) }] : [],
  );
  return { prompt: words.at(-1)?.text ?? "", results };
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

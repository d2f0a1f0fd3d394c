import type { LlmResponse } from "@google/adk";
import type { Message, ModelRecord, Part } from "../agent/conversation.ts";
import type { Answer } from "../agent/model-call.ts";
import type { Usage } from "../agent/price.ts";
import { defined } from "../base/defined.ts";

/** A message of Gemini's, in any of its shapes. */
export interface Content {
  readonly role?: string | undefined;
  readonly parts?: readonly object[] | undefined;
}

/** What is known of a part; providers add fields. */
interface GeminiPart {
  readonly text?: string;
  readonly thought?: boolean;
  readonly functionCall?: { readonly id?: string; readonly name?: string; readonly args?: unknown };
  readonly functionResponse?: { readonly id?: string; readonly name?: string; readonly response?: unknown };
  readonly inlineData?: { readonly mimeType?: string; readonly data?: string };
}

/** Results of tools have the role `user`. */
export function messageOf({ role, parts = [] }: Content): Message {
  const neutral = parts.map(partOf);
  const ofTool = neutral.length > 0 && neutral.every(({ type }) => type === "tool_result");
  return {
    role: ofTool ? "tool" : role === "model" ? "assistant" : role === "system" ? "system" : "user",
    parts: neutral,
  };
}

/** `more` has every field that the neutral part lacks, so that {@link geminiPart} restores it. */
function partOf(part: object): Part {
  const { text, thought, functionCall, functionResponse, inlineData, ...rest } = part as GeminiPart;
  if (functionCall !== undefined) {
    const { id = "", name = "", args, ...call } = functionCall;
    return {
      type: "tool_call",
      id,
      name,
      input: args ?? {},
      more: { ...rest, ...(Object.keys(call).length > 0 && { call }) },
    };
  }
  if (functionResponse !== undefined) {
    const { id = "", name = "", response } = functionResponse;
    return { type: "tool_result", id, name, output: response, more: rest };
  }
  if (inlineData !== undefined) {
    const { mimeType, data, ...more } = inlineData;
    return { type: "file", ...defined({ mediaType: mimeType }), data, more: { ...rest, data: more } };
  }
  if (text === undefined) return { type: "text", text: "", more: { part } }; // code, a file by its address, …
  return { type: thought === true ? "reasoning" : "text", text, more: rest };
}

function geminiPart(part: Part): object {
  const { part: whole, call, data, ...rest } = (part.more ?? {}) as Record<string, object>;
  if (whole !== undefined) return whole;
  if (part.type === "tool_call") {
    return { functionCall: { id: part.id, name: part.name, args: part.input, ...call }, ...rest };
  }
  if (part.type === "file") return { inlineData: { mimeType: part.mediaType, data: part.data, ...data }, ...rest };
  const { type, text } = part as Extract<Part, { text: string }>;
  return { text, ...(type === "reasoning" && { thought: true }), ...rest };
}

/** What a response has besides its parts. */
interface ResponseNote {
  readonly about: Omit<LlmResponse, "content">;
  /** undefined: it has no content. */
  readonly role?: string;
  readonly parts?: number;
}

/** The framework gives ids to calls after every hook, by chance. So they are given here, and recorded. */
export function withIds(responses: readonly LlmResponse[], prefix: string): LlmResponse[] {
  let calls = 0;
  const id = (): string => `${prefix}-${++calls}`;
  return responses.map((response) => {
    const { content } = response as { readonly content?: Content };
    const parts = content?.parts?.map((part) => {
      const { functionCall } = part as GeminiPart;
      return functionCall === undefined || functionCall.id
        ? part
        : { ...part, functionCall: { ...functionCall, id: id() } };
    });
    return parts === undefined ? response : ({ ...response, content: { ...content, parts } } as LlmResponse);
  });
}

export function answerOf(responses: readonly LlmResponse[]): Answer {
  const notes = responses.map(({ content, ...about }): ResponseNote => {
    const { role = "model", parts } = (content ?? {}) as Content;
    return { about: plainOf(about), ...(content !== undefined && { role, parts: parts?.length ?? 0 }) };
  });
  const parts = responses.flatMap(({ content }) => ((content as Content | undefined)?.parts ?? []).map(partOf));
  const { usageMetadata, finishReason, errorCode } = Object.assign({}, ...responses) as LlmResponse;
  return {
    message: { role: "assistant", parts },
    usage: usageOf(usageMetadata),
    finish: parts.some(({ type }) => type === "tool_call") ? "tool-calls" : (finishReason ?? errorCode ?? "stop"),
    rest: notes,
  };
}

export function restored({ message, rest }: ModelRecord): LlmResponse[] {
  let at = 0;
  return (rest as readonly ResponseNote[]).map(({ about, role, parts }) => {
    if (parts === undefined) return { ...about };
    const own = message.parts.slice(at, at + parts).map(geminiPart);
    at += parts;
    return { ...about, content: { role, parts: own } } as LlmResponse;
  });
}

const plainOf = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

/** undefined: the provider has reported none. */
function usageOf(usage: LlmResponse["usageMetadata"]): Usage | undefined {
  if (usage?.promptTokenCount === undefined) return undefined;
  const { promptTokenCount, candidatesTokenCount = 0, thoughtsTokenCount = 0, cachedContentTokenCount } = usage;
  const counts = { cached: cachedContentTokenCount || undefined, reasoning: thoughtsTokenCount || undefined };
  return { input: promptTokenCount, output: candidatesTokenCount + thoughtsTokenCount, ...defined(counts) };
}

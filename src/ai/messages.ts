import type { Message, ModelRecord, Part } from "../agent/conversation.ts";
import type { Answer } from "../agent/model-call.ts";
import type { Usage } from "../agent/price.ts";
import { defined } from "../base/defined.ts";
import type { Content, ModelResult, ModelUsage, PromptMessage } from "./shapes.ts";

/** A message of a prompt. It is only read by people, so what a provider adds is left out. */
export function messageOf({ role, content }: PromptMessage): Message {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return { role, parts: parts.map((part) => promptPart(part)) };
}

function promptPart(part: Content): Part {
  const { toolCallId, toolName, output, input } = part;
  if (part.type === "tool-result") return { type: "tool_result", id: text(toolCallId), name: text(toolName), output };
  if (part.type === "tool-call") return { type: "tool_call", id: text(toolCallId), name: text(toolName), input };
  const { more: _, ...rest } = partOf(part);
  return rest as Part;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** A part of an answer. `more` has every field that the neutral part lacks, so that {@link contentOf} restores it. */
export function partOf({ type, ...fields }: Content): Part {
  if (type === "text" || type === "reasoning") {
    const { text: words, ...more } = fields;
    return { type, text: text(words), ...extra(more) };
  }
  if (type === "tool-call") {
    const { toolCallId, toolName, input: json, ...more } = fields;
    const input = parsed(json);
    const exact = JSON.stringify(input) === json ? {} : { input: json };
    return { type: "tool_call", id: text(toolCallId), name: text(toolName), input, ...extra({ ...exact, ...more }) };
  }
  if (type === "tool-result") {
    const { toolCallId, toolName, result, ...more } = fields;
    return { type: "tool_result", id: text(toolCallId), name: text(toolName), output: result, ...extra(more) };
  }
  if (type === "file") {
    const { mediaType, data, ...more } = fields;
    return { type, mediaType: text(mediaType), data, ...extra(more) };
  }
  return { type: "text", text: "", more: { part: { type, ...fields } } }; // a source, or what a later version adds
}

export function contentOf(part: Part): Content {
  const more = (part.more ?? {}) as Readonly<Record<string, unknown>>;
  if (part.type === "text" || part.type === "reasoning") {
    return "part" in more ? (more.part as Content) : { type: part.type, text: part.text, ...more };
  }
  if (part.type === "tool_call") {
    const { id, name, input } = part;
    return { type: "tool-call", toolCallId: id, toolName: name, input: JSON.stringify(input), ...more };
  }
  if (part.type === "tool_result") {
    const { id, name, output } = part;
    return { type: "tool-result", toolCallId: id, toolName: name, result: output, ...more };
  }
  const { mediaType, data } = part as Extract<Part, { type: "file" }>;
  return { type: "file", mediaType, data, ...more };
}

const extra = (more: object): { more?: unknown } => {
  const set = Object.entries(more).filter(([, value]) => value !== undefined);
  return set.length === 0 ? {} : { more: Object.fromEntries(set) };
};

/** The input of a tool call is JSON, except where the model has made a mistake: the SDK then repairs or reports it. */
function parsed(json: unknown): unknown {
  try {
    return typeof json === "string" ? JSON.parse(json) : json;
  } catch {
    return json;
  }
}

/** An answer as it is recorded: without the bodies and headers of the exchange. */
export function answerOf(result: ModelResult): Answer {
  const { content, finishReason, usage, warnings = [], providerMetadata, structuredOutputText, response } = result;
  const { raw: _, ...counted } = (usage ?? {}) as ModelUsage & { raw?: unknown };
  const { id, timestamp, modelId } = response ?? {};
  const about = defined({ id, timestamp, modelId });
  const rest = {
    finishReason,
    usage: counted,
    ...(warnings.length > 0 && { warnings }),
    ...defined({ providerMetadata, structuredOutputText }),
    ...(Object.keys(about).length > 0 && { response: about }),
  };
  const finish = typeof finishReason === "string" ? finishReason : finishReason?.unified;
  return { message: { role: "assistant", parts: content.map(partOf) }, usage: usageOf(usage), finish, rest };
}

export function restored({ message, rest }: ModelRecord): ModelResult {
  const { warnings = [], ...more } = rest as Omit<ModelResult, "content">;
  return { ...more, warnings, content: message.parts.map(contentOf) };
}

/** undefined: the provider has reported none. */
function usageOf({ inputTokens: input, outputTokens: output }: ModelUsage = {}): Usage | undefined {
  if (input?.total === undefined && output?.total === undefined) return undefined;
  const counts = { cached: input?.cacheRead, cacheWrite: input?.cacheWrite, reasoning: output?.reasoning };
  const known = Object.entries(counts).filter(([, count]) => count !== undefined && count > 0);
  return { input: input?.total ?? 0, output: output?.total ?? 0, ...Object.fromEntries(known) };
}

import {
  type AIMessage,
  type BaseMessage,
  mapChatMessagesToStoredMessages,
  mapStoredMessagesToChatMessages,
  type StoredMessage,
  type UsageMetadata,
} from "@langchain/core/messages";
import type { Message, ModelRecord, Part, Role } from "../agent/conversation.ts";
import type { Answer } from "../agent/model-call.ts";
import type { Usage } from "../agent/price.ts";
import { defined } from "../base/defined.ts";

const roles: Readonly<Record<string, Role>> = { human: "user", ai: "assistant", system: "system", tool: "tool" };

/** A message in the shape that all frameworks share. */
export function messageOf(message: BaseMessage): Message {
  const role = roles[message.getType()] ?? "user";
  const { tool_call_id: id, name } = message as BaseMessage & { tool_call_id?: string };
  if (role === "tool" && id !== undefined) {
    return { role, parts: [{ type: "tool_result", id, output: message.content, ...defined({ name }) }] };
  }
  const { content } = message;
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const calls = (message as AIMessage).tool_calls ?? [];
  return {
    role,
    parts: [
      ...blocks.flatMap((block) => partOf(block as Block)),
      ...calls.map(
        (call, k): Part => ({ type: "tool_call", id: call.id ?? `call ${k}`, name: call.name, input: call.args }),
      ),
    ],
  };
}

type Block = { readonly type?: string; readonly [key: string]: unknown };

/** Blocks of tool calls are left out: they are in the message's list of calls too. */
function partOf(block: Block): Part[] {
  const { type = "", text, reasoning, thinking } = block;
  if (type === "text") return text === "" ? [] : [{ type, text: String(text) }];
  if (type === "reasoning" || type === "thinking")
    return [{ type: "reasoning", text: String(reasoning ?? thinking ?? "") }];
  if (/^(tool_use|tool_call|tool_call_chunk|input_json_delta|function_call)$/.test(type)) return [];
  return [{ type: "file", mediaType: type, data: JSON.stringify(block) }];
}

/** What the record of an answer holds besides its words and calls, if they are all of its content. */
interface Rest {
  readonly stored: StoredMessage;
  /** The content and the calls are those of the message. */
  readonly slim?: true;
}

/** How an answer is recorded. Words and calls are stored once. */
export function answerOf(message: AIMessage): Answer {
  const [stored] = mapChatMessagesToStoredMessages([message]);
  const { content, tool_calls: _calls, tool_call_chunks: _chunks, ...about } = stored!.data as StoredData;
  const slim = typeof content === "string" && (message.tool_calls ?? []).every(({ id }) => id !== undefined);
  const data = (slim ? about : { content, tool_calls: message.tool_calls, ...about }) as StoredMessage["data"];
  const rest: Rest = { stored: { type: "ai", data: JSON.parse(JSON.stringify(data)) }, ...(slim && { slim }) };
  const { finish_reason, stop_reason } = message.response_metadata as Record<string, unknown>;
  const finish = finish_reason ?? stop_reason;
  return {
    message: messageOf(message),
    usage: usageOf(message),
    finish: typeof finish === "string" ? finish : undefined,
    rest,
  };
}

type StoredData = StoredMessage["data"] & { readonly tool_calls?: unknown; readonly tool_call_chunks?: unknown };

function usageOf(message: AIMessage): Usage | undefined {
  const usage = message.usage_metadata as UsageMetadata | undefined;
  if (usage === undefined) return undefined;
  const { input_token_details: input = {}, output_token_details: output = {} } = usage;
  return {
    ...{ input: usage.input_tokens, output: usage.output_tokens },
    ...defined({ cached: input.cache_read, cacheWrite: input.cache_creation, reasoning: output.reasoning }),
  };
}

/** The answer from its record. */
export function restored({ message, rest }: ModelRecord): AIMessage {
  const { stored, slim } = rest as Rest;
  const content = message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  const tool_calls = message.parts.flatMap((part) =>
    part.type === "tool_call" ? [{ type: "tool_call", id: part.id, name: part.name, args: part.input }] : [],
  );
  const data = slim === true ? { ...stored.data, content, tool_calls } : stored.data;
  const [found] = mapStoredMessagesToChatMessages([{ type: "ai", data: data as StoredMessage["data"] }]);
  return found as AIMessage;
}

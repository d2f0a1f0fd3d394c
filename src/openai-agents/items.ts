import type { AgentInputItem, AgentOutputItem } from "@openai/agents";
import type { Message, Part, Role } from "../agent/conversation.ts";

/** An item in any of its shapes: only the fields that readers of a conversation see are known. */
type Item = Readonly<Record<string, unknown>> & { readonly type?: string; readonly role?: string };
type Content = Readonly<Record<string, unknown>> & { readonly type: string };

/** What one model call says is several items, and comes back as such: they are one message of the conversation. */
export function groupsOf(instructions: string | undefined, input: string | readonly AgentInputItem[]): Item[][] {
  const items: readonly Item[] =
    typeof input === "string" ? [{ role: "user", content: input }] : (input as readonly Item[]);
  const groups: Item[][] = instructions === undefined ? [] : [[{ role: "system", content: instructions }]];
  for (const item of items) {
    const last = groups.at(-1);
    if (last !== undefined && roleOf(item) === "assistant" && roleOf(last[0]!) === "assistant") last.push(item);
    else groups.push([item]);
  }
  return groups;
}

export const messageOf = (items: readonly Item[]): Message => ({
  role: roleOf(items[0]!),
  parts: items.flatMap(partsOf),
});

function roleOf({ type = "message", role }: Item): Role {
  if (type === "message") return role as Role;
  return type.endsWith("_result") || type.endsWith("_output") ? "tool" : "assistant";
}

/** The parts of an item. `more` of the first one has the rest of the item, so that {@link itemsOf} restores it. */
export function partsOf(item: Item): Part[] {
  const { type = "message", content, callId, name, arguments: json, output, ...rest } = item;
  if (type === "function_call") {
    const input = parsed(json);
    const exact = JSON.stringify(input) === json ? {} : { arguments: json };
    return [{ type: "tool_call", id: text(callId), name: text(name), input, more: { item: { ...rest, ...exact } } }];
  }
  if (type === "function_call_result") {
    return [{ type: "tool_result", id: text(callId), name: text(name), output, more: { item: rest } }];
  }
  const isWords = (type === "message" || type === "reasoning") && name === undefined && callId === undefined;
  const contents = typeof content === "string" ? [{ type: "input_text", text: content }] : content;
  if (!isWords || !Array.isArray(contents) || contents.length === 0)
    return [{ type: "text", text: "", more: { item } }];
  const parts = (contents as readonly Content[]).map((one) => contentPart(one, type));
  const of = { ...("type" in item && { type: item.type }), ...rest, content: [] };
  return [{ ...parts[0]!, more: { ...(parts[0]!.more as object), item: of } }, ...parts.slice(1)];
}

function contentPart(content: Content, of: string): Part {
  const { type, text: words, refusal, image, file, audio, transcript, ...rest } = content;
  const plainText = words ?? refusal;
  if (typeof plainText === "string") {
    return { type: of === "reasoning" ? "reasoning" : "text", text: plainText, more: { content: { type, ...rest } } };
  }
  const data = image ?? file ?? audio;
  return {
    type: "file",
    mediaType: type.replace(/^(input|output)_/, ""),
    data,
    more: { content: { type, ...rest, transcript } },
  };
}

/** The items of a recorded answer. */
export function itemsOf({ parts }: Message): AgentOutputItem[] {
  const items: Record<string, unknown>[] = [];
  for (const part of parts) {
    const { item, content } = (part.more ?? {}) as { item?: Item; content?: Content };
    if (part.type === "tool_call") {
      const { id: callId, name, input } = part;
      items.push({ type: "function_call", callId, name, arguments: JSON.stringify(input), ...item });
    } else if (content === undefined) items.push({ ...item });
    else {
      if (item !== undefined) items.push({ ...item, content: [] });
      (items.at(-1)!.content as unknown[]).push(contentOf(part, content));
    }
  }
  return items as unknown as AgentOutputItem[];
}

function contentOf(part: Part, { transcript, ...content }: Content): Content {
  if (part.type === "file") {
    const field = ["image", "file", "audio"].find((name) => content.type.endsWith(name))!;
    return { ...content, [field]: part.data, ...(transcript !== undefined && { transcript }) };
  }
  const { text: words } = part as Extract<Part, { text: string }>;
  return { ...content, [content.type === "refusal" ? "refusal" : "text"]: words };
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Arguments are JSON, except where the model has made a mistake: the framework then reports it to the model. */
function parsed(json: unknown): unknown {
  try {
    return typeof json === "string" ? JSON.parse(json) : json;
  } catch {
    return json;
  }
}

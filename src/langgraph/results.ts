import {
  type BaseMessage,
  isBaseMessage,
  mapChatMessagesToStoredMessages,
  mapStoredMessagesToChatMessages,
  type StoredMessage,
} from "@langchain/core/messages";
import { Command, isCommand } from "@langchain/langgraph";

const messageMark = "langchain:message";
const commandMark = "langgraph:command";

const storedOf = (message: BaseMessage): StoredMessage =>
  JSON.parse(JSON.stringify(mapChatMessagesToStoredMessages([message])[0])) as StoredMessage;

/** The results of a graph's parts, with each message and command as `change` returns it. */
function mapped(value: unknown, change: (found: object) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const changed = change(value);
  if (changed !== value) return changed;
  if (Array.isArray(value)) return value.map((one) => mapped(one, change));
  if (![Object.prototype, null].includes(Object.getPrototypeOf(value))) return value;
  return Object.fromEntries(Object.entries(value).map(([key, own]) => [key, mapped(own, change)]));
}

/** A value with its messages in the form in which LangChain stores them, so that a journal can hold it. */
export const storable = (value: unknown): unknown =>
  mapped(value, (found) => (isBaseMessage(found) ? storedOf(found) : found));

/** The result of a tool, from which {@link unmarked} restores messages and commands. */
export const marked = (value: unknown): unknown =>
  mapped(value, (found) => {
    if (isBaseMessage(found)) return { [messageMark]: storedOf(found) };
    if (!isCommand(found)) return found;
    const { update, goto, resume, graph } = found as Command;
    const fields = Object.entries({ update, goto, resume, graph }).filter(([, field]) => field !== undefined);
    return { [commandMark]: marked(Object.fromEntries(fields)) };
  });

export const unmarked = (value: unknown): unknown =>
  mapped(value, (found) => {
    const { [messageMark]: message, [commandMark]: command } = found as Record<string, unknown>;
    if (message !== undefined) return mapStoredMessagesToChatMessages([message as StoredMessage])[0];
    return command === undefined ? found : new Command(unmarked(command) as ConstructorParameters<typeof Command>[0]);
  });

import { createHash } from "node:crypto";
import { Message, type Part, Role, TaskState } from "@a2a-js/sdk";
import { type GateDefinition, gate } from "../sdk/gate.ts";

/** A message of a client, in the JSON form of the protocol, and its words. */
export interface TaskMessage {
  /** The text parts, one line each. */
  readonly text: string;
  /** `{ messageId, role: "ROLE_USER", parts: [{ text } | { data } | { raw } | { url }], … }`. */
  readonly message: WireMessage;
}

/** The input of the workflow that works on a task: the first message. */
export interface TaskInput extends TaskMessage {
  /** The id of the task. */
  readonly taskId: string;
  /** The id of the conversation. */
  readonly contextId: string;
}

/** A message as the protocol writes it. */
export interface WireMessage {
  /** Its id. */
  readonly messageId: string;
  /** Whose message it is. */
  readonly role: string;
  readonly parts?: readonly WirePart[];
  /** Further fields of the protocol. */
  readonly [field: string]: unknown;
}

/** A part as the protocol writes it: text, JSON, bytes as base64, or an address. */
export interface WirePart {
  /** A text. */
  readonly text?: string;
  /** JSON. */
  readonly data?: unknown;
  /** Bytes, as base64. */
  readonly raw?: string;
  /** An address. */
  readonly url?: string;
  /** The name of the file. */
  readonly filename?: string;
  /** The media type. */
  readonly mediaType?: string;
}

/** What a workflow may return in place of a text or plain data: its artifacts, and the last words. */
export interface TaskOutput {
  readonly artifacts?: readonly WireArtifact[];
  /** The last words to the client. */
  readonly message?: string;
}

/** An artifact as the protocol writes it. Without an id it is named by its place. */
export interface WireArtifact {
  /** Its id. */
  readonly artifactId?: string;
  readonly name?: string;
  /** What it is. */
  readonly description?: string;
  readonly parts: readonly WirePart[];
}

/**
 * The gate at which a task waits for the next message of its client: the task is then `input-required`.
 *
 * @example
 * const answer = await tape.gate(taskMessage, { payload: "Which invoice?" });
 */
export const taskMessage: GateDefinition<TaskMessage> = gate("a2a message", { forAgents: true });

/** Thrown by a workflow: the task ends as `rejected`, not as `failed`. */
export class TaskRejected extends Error {
  override readonly name = "TaskRejected";
}

/** States that no later event changes. */
export const isTerminal = (state: TaskState | undefined): boolean =>
  state === TaskState.TASK_STATE_COMPLETED ||
  state === TaskState.TASK_STATE_FAILED ||
  state === TaskState.TASK_STATE_CANCELED ||
  state === TaskState.TASK_STATE_REJECTED;

export function taskMessageOf(message: Message): TaskMessage {
  const texts = message.parts.flatMap(({ content }) => (content?.$case === "text" ? [content.value] : []));
  return { text: texts.join("\n"), message: Message.toJSON(message) as WireMessage };
}

/** A message that is sent again is the same one; another content under its id is another message. */
export function identityOf(message: Message): string {
  const { messageId, role, parts } = Message.toJSON(message) as WireMessage;
  return createHash("sha256")
    .update(JSON.stringify([messageId, role, parts]))
    .digest("hex");
}

export const textPart = (text: string): Part => partOf({ content: { $case: "text", value: text } });
export const dataPart = (value: unknown): Part => partOf({ content: { $case: "data", value: plain(value) } });

const partOf = ({ content }: Pick<Part, "content">): Part => ({
  content,
  metadata: undefined,
  filename: "",
  mediaType: content?.$case === "text" ? "text/plain" : "application/json",
});

/** A message of the agent. Its id is that of the record that it comes from, so that every reader builds the same one. */
export function agentMessage(of: { id: string; contextId: string }, messageId: string, parts: Part[]): Message {
  const { id: taskId, contextId } = of;
  return {
    ...{ messageId, taskId, contextId, role: Role.ROLE_AGENT, parts, metadata: undefined },
    ...{ extensions: [], referenceTaskIds: [] },
  };
}

/** What no JSON holds (bytes, dates, class instances) becomes what `JSON.stringify` makes of it. */
function plain(value: unknown): unknown {
  const text = JSON.stringify(value, (_key, one: unknown) => (typeof one === "bigint" ? String(one) : one));
  return text === undefined ? null : JSON.parse(text);
}

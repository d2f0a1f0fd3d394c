import { encode, sizeOf } from "../base/codec.ts";
import { hash as digest } from "../base/late-builtins.ts";

/*
 * The record of a model call, whatever the framework. `modelCall` writes it as the record `decision.made`:
 *
 *   name      "<agent> <n>", n counts the calls of this agent in its lane, from 1 on
 *   model     "<provider>/<model>"
 *   request   RequestNote: the messages that the conversation did not have yet, and a hash of those before them
 *   value     ModelRecord: the answer as a neutral message, and what the framework needs to restore its own result
 *   usage     { input, output, cached?, cacheWrite?, reasoning?, usd? }: tokens, and their price if a table has it
 *   error     instead of a value: the call failed for good
 *
 * A reader rebuilds a conversation from the journal alone: start with nothing; for each decision of one agent and lane
 * keep the first `request.before.messages` messages, add `request.messages`, add `value.message`. A tool call is the
 * effect in the lane of its call, or the one whose arguments are `{ call, input }` with the id of the `tool_call`.
 */

/** `more`: what only the framework reads, for instance the metadata of a provider. */
export type Part =
  | { readonly type: "text" | "reasoning"; readonly text: string; readonly cut?: number; readonly more?: unknown }
  | {
      readonly type: "tool_call";
      readonly id: string;
      readonly name: string;
      readonly input: unknown;
      readonly more?: unknown;
    }
  | {
      readonly type: "tool_result";
      readonly id: string;
      readonly name?: string;
      readonly output: unknown;
      readonly more?: unknown;
    }
  /** `data`: bytes, base64 or a URL. Notes of requests have the size and the hash of long data instead. */
  | {
      readonly type: "file";
      readonly mediaType?: string;
      readonly name?: string;
      readonly data?: unknown;
      readonly bytes?: number;
      readonly sha256?: string;
      readonly more?: unknown;
    };

export type Role = "system" | "user" | "assistant" | "tool";

/** A message of a conversation, in the shape that all frameworks share. */
export interface Message {
  /** Whose message it is. */
  readonly role: Role;
  readonly parts: readonly Part[];
  /** The parts are left out, because the note would be too large. */
  readonly cut?: true;
}

/** What a decision notes of its request. */
export interface RequestNote {
  /** Messages that are new in this conversation. */
  readonly messages: readonly Message[];
  /** How many messages come before them, and their hash. Absent: none. */
  readonly before?: { readonly messages: number; readonly hash: string };
  /** Absent: as in the previous call of the conversation. */
  readonly settings?: unknown;
  /** The names of the tools that the model could call. */
  readonly tools?: readonly string[];
  /** Of the whole request: all messages, settings and tools. */
  readonly hash: string;
  /** Replayed calls whose code now sends another request than the recorded one. */
  readonly changed?: readonly string[];
}

/** The value of a decision that a model made. */
export interface ModelRecord {
  readonly message: Message;
  /** The hash of the request that it answers. */
  readonly hash: string;
  /** Why the model stopped, for instance `stop` or `tool-calls`. */
  readonly finish?: string;
  /** What the framework needs besides the message to restore its result. */
  readonly rest?: unknown;
  /** The answer could not be stored, and the call ends with this reason. It is paid for. */
  readonly refused?: string;
}

/** A request to a model, in the framework's own messages. */
export interface ModelRequest {
  readonly messages: readonly unknown[];
  readonly toMessage: (message: never) => Message;
  /** Whatever else is sent and may change the answer: the temperature, the format. */
  readonly settings?: unknown;
  /** The names of the tools, for readers. */
  readonly tools?: readonly string[];
  /** Their definitions: part of the hash, and too long for a note. */
  readonly definitions?: unknown;
}

/** A request compared with the conversation so far. */
export interface ComparedRequest {
  readonly hash: string;
  /** Characters of the whole request. */
  readonly chars: number;
  /** Computed only for the call that records it. */
  note(): RequestNote;
  /** The conversation now has this request and its answer. */
  remember(answer: Message): void;
}

/**
 * The conversation of one agent in one lane, in memory. It is rebuilt by replay, because replayed calls pass through it
 * too. It compares messages by value, which is fast where their texts are the same objects, and hashes only new ones: a
 * conversation of n turns costs n hashes. Messages must not be changed in place.
 */
export class Conversation {
  /** The number of calls. */
  calls = 0;
  /** Replayed calls with another request, to be noted by the next live call. */
  changed: string[] = [];
  #messages: readonly unknown[] = [];
  /** Of the conversation up to each message. */
  #hashes: readonly string[] = [];
  #chars: readonly number[] = [];
  #answer: Message | undefined;
  #settings: { readonly value: unknown; readonly text: string } | undefined;

  compare(request: ModelRequest): ComparedRequest {
    const { settings, tools, definitions } = request;
    const messages = [...request.messages];
    let same = 0;
    const before = this.#messages;
    while (same < messages.length && same < before.length && isSame(messages[same], before[same])) same++;
    const hashes = this.#hashes.slice(0, same);
    const chars = this.#chars.slice(0, same);
    for (let k = same; k < messages.length; k++) {
      const text = textOf(messages[k]);
      hashes.push(sha256(`${hashes[k - 1] ?? ""}\n${text}`));
      chars.push((chars[k - 1] ?? 0) + text.length);
    }
    const all = [settings, tools, definitions];
    const sameSettings = this.#settings !== undefined && isSame(all, this.#settings.value);
    const settingsText = sameSettings ? this.#settings!.text : textOf(all);
    const known = this.#known(messages, request, same);
    const noteSettings = !sameSettings || same === 0;
    const hash = sha256(`${hashes.at(-1) ?? ""}\n${settingsText}`);
    const changed = this.changed;
    return {
      hash,
      chars: (chars.at(-1) ?? 0) + settingsText.length,
      note: () => ({
        messages: bounded(messages.slice(known).map((message) => request.toMessage(message as never))),
        ...(known > 0 && { before: { messages: known, hash: hashes[known - 1]! } }),
        ...(noteSettings && !isEmpty(settings) && { settings: noted(settings) }),
        ...(noteSettings && tools !== undefined && tools.length > 0 && { tools }),
        hash,
        ...(changed.length > 0 && { changed: changed.slice(-maxChanged) }),
      }),
      remember: (answer) => {
        this.#messages = messages;
        this.#hashes = hashes;
        this.#chars = chars;
        this.#answer = answer;
        this.#settings = { value: all, text: settingsText };
      },
    };
  }

  /** How many of the messages a reader of the journal knows: those of the previous request, and its answer. */
  #known(messages: readonly unknown[], { toMessage }: ModelRequest, same: number): number {
    const answer = this.#answer;
    if (answer === undefined || same < this.#messages.length || same >= messages.length) return same;
    const next = messages[same];
    const [one, other] = [contentOf(toMessage(next as never)), contentOf(answer)];
    return isSame(one, other) || textOf(one) === textOf(other) ? same + 1 : same;
  }
}

/**
 * Messages are trees of plain data; whatever else is in one is compared by identity. A conversation of n turns comes
 * here with n² messages, which frameworks create for each call: loops without arrays of keys halve its replay.
 */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let k = 0; k < a.length; k++) if (!isSame(a[k], b[k])) return false;
    return true;
  }
  if (isPlain(a)) {
    let fields = 0;
    for (const key in a) {
      const [one, other] = [a[key], (b as Fields)[key]];
      if (one === undefined ? !Object.hasOwn(b, key) || other !== undefined : !isSame(one, other)) return false;
      fields++;
    }
    for (const _ in b) fields--;
    return fields === 0;
  }
  if (isBytes(a)) return isBytes(b) && Buffer.compare(a, b) === 0;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  // A Date or a URL has no fields, but a text.
  if (keys.length === 0) return textOf(a) === textOf(b);
  return keys.every((key) => Object.hasOwn(b, key) && isSame((a as Fields)[key], (b as Fields)[key]));
}

type Fields = Readonly<Record<string, unknown>>;

function isPlain(value: object): value is Fields {
  const proto = Object.getPrototypeOf(value);
  return proto === Object.prototype || proto === null;
}

const maxChanged = 20;
/** A request is noted for readers; replay does not need it. So its notes are cut, where an answer never is. */
const maxNoteBytes = 1024 * 1024;
const maxTextChars = 64 * 1024;
const maxFileChars = 1_024;
const maxSettingsBytes = 64 * 1024;

/** Cuts long texts and files, then whole messages, the oldest first, until the notes fit into a record. */
function bounded(messages: readonly Message[]): readonly Message[] {
  let left = maxNoteBytes;
  return messages
    .map(({ role, parts }): Message => ({ role, parts: parts.map(shortened) }))
    .reverse()
    .map((message): Message => {
      const bytes = bytesOf(message);
      if (bytes > left) return { role: message.role, parts: [], cut: true };
      left -= bytes;
      return message;
    })
    .reverse();
}

function shortened(part: Part): Part {
  if (part.type === "text" || part.type === "reasoning") {
    const { type, text } = part;
    return text.length <= maxTextChars
      ? { type, text }
      : { type, text: text.slice(0, maxTextChars).toWellFormed(), cut: text.length };
  }
  if (part.type === "file") {
    const { type, mediaType, name, data } = part;
    const about = { type, ...(mediaType !== undefined && { mediaType }), ...(name !== undefined && { name }) };
    if (isBytes(data)) return { ...about, bytes: data.byteLength, sha256: digest("sha256", data, "hex") };
    if (typeof data !== "string" || data.length <= maxFileChars)
      return { ...about, ...(data !== undefined && { data }) };
    return { ...about, bytes: data.length, sha256: sha256(data) };
  }
  const { more: _, ...rest } = part;
  return rest;
}

/** Settings for a reader: not longer than a page, and nothing that a record cannot hold. */
const noted = (settings: unknown): unknown =>
  bytesOf(settings) <= maxSettingsBytes ? JSON.parse(textOf(settings)) : { cut: true };

const isEmpty = (settings: unknown): boolean =>
  settings === undefined || (typeof settings === "object" && settings !== null && Object.keys(settings).length === 0);

/** Infinity: it cannot be stored. */
function bytesOf(value: unknown): number {
  try {
    return sizeOf(encode(value));
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

const sha256 = (text: string): string => digest("sha256", text, "hex").slice(0, 32);

/**
 * The text of a message, to hash it. Bytes are hashed on their own: their JSON would be ten times their size. Most
 * messages have none, and JSON is several times faster without a replacer.
 */
const textOf = (message: unknown): string =>
  (hasBytes(message) ? JSON.stringify(message, withoutBytes) : JSON.stringify(message)) ?? "null";

/** Deeper values go through the replacer, which finds bytes anywhere. */
const maxDepth = 8;

function hasBytes(value: unknown, depth = 0): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (isBytes(value) || depth > maxDepth) return true;
  if (Array.isArray(value)) return value.some((item) => hasBytes(item, depth + 1));
  for (const key in value) if (hasBytes((value as Fields)[key], depth + 1)) return true;
  return false;
}

const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array;

/** `this` is the object that has the key: a Buffer would already be its own long JSON. */
function withoutBytes(this: Readonly<Record<string, unknown>>, key: string, value: unknown): unknown {
  const given = this[key];
  return isBytes(given) ? `sha256:${digest("sha256", given, "hex")}` : value;
}

/** What a message says, without metadata and empty texts: an answer comes back in the next request without them. */
function contentOf({ role, parts }: Message): readonly unknown[] {
  const content = parts.flatMap((part) => {
    if (part.type === "text" || part.type === "reasoning") return part.text === "" ? [] : [[part.type, part.text]];
    if (part.type === "tool_call") return [[part.type, part.id, part.name, part.input]];
    if (part.type === "tool_result") return [[part.type, part.id, part.output]];
    return part.type === "file" ? [[part.type, part.mediaType, part.data]] : [];
  });
  return [role, content];
}

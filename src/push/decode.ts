/** A request as the event that it carries. */
export interface PushEvent {
  /** How it arrived. */
  readonly form: "pubsub" | "cloudevent" | "task" | "scheduler" | "webhook" | "plain";
  /** The sender's id, equal on a redelivery. */
  readonly id: string | undefined;
  /** What sent it: a subscription, a queue, the source of a CloudEvent. */
  readonly source: string | undefined;
  /** The type of the event, if it has one. */
  readonly type: string | undefined;
  /** Attributes of a Pub/Sub message, or attributes and extensions of a CloudEvent. */
  readonly attributes: Readonly<Record<string, string>>;
  /** JSON where the sender says so or the bytes are JSON, otherwise the bytes. */
  readonly data: unknown;
  /** The reactors that it names; empty if it names none. */
  readonly wants: readonly string[];
}

/** A request that is none of the known forms. */
export class Unreadable extends Error {}

/** More events in one batch than any sender puts into one. */
const maxEvents = 1_000;
const maxAttributes = 100;

/**
 * Reads a request of Pub/Sub (wrapped and unwrapped), CloudEvents (binary, structured, batch), Cloud Tasks, Cloud
 * Scheduler or a Standard Webhook. Throws `Unreadable` for anything else that has a body which is not JSON.
 */
export function decodePush(headers: Headers, body: Uint8Array): PushEvent[] {
  const type = (headers.get("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();
  if (type === "application/cloudevents-batch+json") return batch(jsonOf(body));
  if (type === "application/cloudevents+json") return [structured(jsonOf(body))];
  if (headers.has("ce-specversion")) return [binary(headers, type, body)];
  if (headers.has("x-goog-pubsub-message-id")) return [unwrapped(headers, type, body)];
  if (headers.has("x-cloudtasks-taskname")) {
    const source = headers.get("x-cloudtasks-queuename") ?? undefined;
    return [plain("task", headers.get("x-cloudtasks-taskname")!, source, optionalJson(body))];
  }
  if (headers.has("x-cloudscheduler")) {
    const source = headers.get("x-cloudscheduler-jobname") ?? undefined;
    return [plain("scheduler", headers.get("x-cloudscheduler-scheduletime") ?? undefined, source, optionalJson(body))];
  }
  if (headers.has("webhook-id")) return [plain("webhook", headers.get("webhook-id")!, undefined, jsonOf(body))];
  const value = optionalJson(body);
  return [isWrapped(value) ? wrapped(value) : plain("plain", undefined, undefined, value)];
}

const decoder = new TextDecoder("utf-8", { fatal: true });

function jsonOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(body)) as unknown;
  } catch {
    throw new Unreadable("the body is not JSON");
  }
}

const optionalJson = (body: Uint8Array): unknown => (body.length === 0 ? undefined : jsonOf(body));

/** The bytes, as JSON if they are. */
function dataOf(bytes: Uint8Array, type: string): unknown {
  if (bytes.length === 0) return undefined;
  if (type !== "" && !/[/+]json$/.test(type)) return type.startsWith("text/") ? decoder.decode(bytes) : bytes;
  try {
    return JSON.parse(decoder.decode(bytes)) as unknown;
  } catch {
    if (type !== "") throw new Unreadable("the data is not JSON, though its type says so");
    return bytes;
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function texts(value: unknown): Record<string, string> {
  if (!isObject(value)) return {};
  const entries = Object.entries(value).slice(0, maxAttributes);
  return Object.fromEntries(
    entries.flatMap(([key, one]) => (["string", "number", "boolean"].includes(typeof one) ? [[key, String(one)]] : [])),
  );
}

/** `tapewants` or `reactor`, in the attributes or in the data: one name, or several with commas. */
function wantsOf(attributes: Readonly<Record<string, string>>, data: unknown): string[] {
  const inData = isObject(data) ? (data.tapewants ?? data.reactor) : undefined;
  const text = attributes.tapewants ?? attributes.reactor ?? inData;
  return typeof text === "string" ? text.split(",").flatMap((name) => (name.trim() === "" ? [] : [name.trim()])) : [];
}

function plain(form: PushEvent["form"], id: string | undefined, source: string | undefined, data: unknown): PushEvent {
  const type = isObject(data) && typeof data.type === "string" ? data.type : undefined;
  return { form, id, source, type, attributes: {}, data, wants: wantsOf({}, data) };
}

interface WrappedMessage {
  readonly message: Record<string, unknown>;
  readonly subscription?: unknown;
}

const isWrapped = (value: unknown): value is WrappedMessage =>
  isObject(value) && isObject(value.message) && ("data" in value.message || "attributes" in value.message);

/** Pub/Sub's own envelope: the data is in base64. */
function wrapped({ message, subscription }: WrappedMessage): PushEvent {
  const attributes = texts(message.attributes);
  const bytes = Buffer.from(typeof message.data === "string" ? message.data : "", "base64");
  const id = message.messageId ?? message.message_id;
  return pubsub(attributes, dataOf(bytes, attributes["content-type"] ?? ""), {
    id: typeof id === "string" ? id : undefined,
    source: typeof subscription === "string" ? subscription : undefined,
  });
}

/** Without the envelope: attributes are headers, and the body is the data. */
function unwrapped(headers: Headers, type: string, body: Uint8Array): PushEvent {
  const attributes: Record<string, string> = {};
  for (const [name, value] of headers) {
    if (Object.keys(attributes).length < maxAttributes) attributes[name] = value;
  }
  return pubsub(attributes, dataOf(body, type === "application/json" ? type : ""), {
    id: headers.get("x-goog-pubsub-message-id") ?? undefined,
    source: headers.get("x-goog-pubsub-subscription-name") ?? undefined,
  });
}

/** A message whose attributes are those of a CloudEvent keeps that event's id, which survives a second publication. */
function pubsub(
  attributes: Readonly<Record<string, string>>,
  data: unknown,
  message: { readonly id: string | undefined; readonly source: string | undefined },
): PushEvent {
  return {
    form: "pubsub",
    id: attributes["ce-id"] ?? message.id,
    source: attributes["ce-source"] ?? message.source,
    type: attributes["ce-type"],
    attributes,
    data,
    wants: wantsOf({ ...attributes, ...ceAttributes(attributes) }, data),
  };
}

const ceAttributes = (attributes: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(attributes).flatMap(([name, value]) => (name.startsWith("ce-") ? [[name.slice(3), value]] : [])),
  );

function cloudEvent(attributes: Readonly<Record<string, string>>, data: unknown): PushEvent {
  const { id, source, type, specversion } = attributes;
  if (specversion !== "1.0") throw new Unreadable("specversion of a CloudEvent must be 1.0");
  if (!id || !source || !type) throw new Unreadable("a CloudEvent needs id, source and type");
  return { form: "cloudevent", id, source, type, attributes, data, wants: wantsOf(attributes, data) };
}

function structured(value: unknown): PushEvent {
  if (!isObject(value)) throw new Unreadable("a CloudEvent must be an object");
  const { data, data_base64: encoded, ...attributes } = value;
  const bytes = typeof encoded === "string" ? Buffer.from(encoded, "base64") : undefined;
  return cloudEvent(texts(attributes), data ?? bytes);
}

function batch(value: unknown): PushEvent[] {
  if (!Array.isArray(value) || value.length > maxEvents) {
    throw new Unreadable(`a batch must be a list of at most ${maxEvents} CloudEvents`);
  }
  return value.map(structured);
}

/** Attributes are headers `ce-…`, percent-encoded; the body is the data. */
function binary(headers: Headers, type: string, body: Uint8Array): PushEvent {
  const attributes: Record<string, string> = {};
  for (const [name, value] of headers) {
    if (name.startsWith("ce-") && Object.keys(attributes).length < maxAttributes)
      attributes[name.slice(3)] = unescaped(value);
  }
  return cloudEvent(attributes, dataOf(body, type));
}

function unescaped(value: string): string {
  try {
    return decodeURIComponent(value.replace(/^"(.*)"$/s, "$1"));
  } catch {
    throw new Unreadable("a ce- header is not percent-encoded");
  }
}

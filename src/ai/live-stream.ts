import type { Invocation } from "../agent/model-call.ts";
import type { Content, ModelResult, StreamResult } from "./shapes.ts";

/**
 * The stream that the SDK reads. Words are passed on while the model produces them. A tool call and `finish` are passed
 * on only when the answer is recorded: AI SDK 6 runs a tool as soon as its call arrives, and an effect whose decision
 * is not recorded could not be replayed. From the first held part on everything waits, so that the order is the recorded
 * one.
 */
export class LiveStream {
  readonly stream: ReadableStream<Content>;
  /** Resolves with the first part, or when the answer is recorded. */
  readonly started: Promise<void>;
  /** The parts of the answer that were passed on, from the first one on. */
  #passed = 0;
  /** Words that were passed on without their end. */
  readonly #open = new Map<string, Content>();
  #controller!: ReadableStreamDefaultController<Content>;
  #closed = false;
  #start!: () => void;

  constructor() {
    this.started = new Promise((resolve) => {
      this.#start = resolve;
    });
    this.stream = new ReadableStream<Content>({
      start: (controller) => {
        this.#controller = controller;
      },
      cancel: () => {
        this.#closed = true;
      },
    });
  }

  /** Reads the model's stream to its end. */
  async read({ stream }: StreamResult, { emit, shown }: Invocation): Promise<ModelResult> {
    const answer = new GatheredAnswer();
    let held = false;
    const reader = stream.getReader();
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const part = next.value;
      if (part.type === "error") throw part.error;
      if (answer.add(part) === "held") held = true;
      const [, kind, edge] = words.exec(part.type) ?? [];
      if (kind === undefined) continue;
      this.#words(part, `${kind} ${String(part.id)}`, edge!, held ? undefined : { shown, answer });
      const { delta } = part;
      if (typeof delta !== "string") continue;
      for (const piece of pieces(delta)) await emit({ type: kind, text: piece });
    }
    return answer.generated();
  }

  /** Words that started before the first held part are passed on to their end. */
  #words(
    part: Content,
    key: string,
    edge: string,
    free: { readonly shown: () => void; readonly answer: GatheredAnswer } | undefined,
  ): void {
    if (free !== undefined && !this.#open.has(key)) {
      free.shown();
      if (this.#passed === 0) this.#pass({ type: "stream-start", warnings: free.answer.warnings });
      this.#passed = free.answer.length;
      this.#open.set(key, part);
    }
    if (!this.#open.has(key)) return;
    this.#pass(part);
    if (edge === "end") this.#open.delete(key);
  }

  /** Passes on what the SDK does not have yet, from the record. */
  finish({ content, warnings, response, finishReason, usage, providerMetadata }: ModelResult): void {
    if (this.#passed === 0) this.#pass({ type: "stream-start", warnings });
    for (const { type, id } of this.#open.values()) this.#pass({ type: type.replace(/-\w+$/, "-end"), id });
    for (const [k, part] of content.slice(this.#passed).entries()) {
      for (const piece of asStream(part, `recorded-${k}`)) this.#pass(piece);
    }
    if (response !== undefined) this.#pass({ type: "response-metadata", ...response });
    this.#pass({ type: "finish", finishReason, usage, ...(providerMetadata !== undefined && { providerMetadata }) });
    if (!this.#closed) this.#controller.close();
    this.#closed = true;
  }

  fail(error: unknown): void {
    this.#start();
    if (!this.#closed) this.#controller.error(error);
    this.#closed = true;
  }

  #pass(part: Content): void {
    this.#start();
    if (!this.#closed) this.#controller.enqueue(part);
  }
}

const words = /^(text|reasoning)-(start|delta|end)$/;

/** A chunk of a stream has at most 64 KiB; models send less, replays of gateways may not. */
const maxPieceChars = 16_384;

function* pieces(text: string): Generator<string> {
  for (let k = 0; k < text.length; k += maxPieceChars) yield text.slice(k, k + maxPieceChars);
}

/** A recorded part as the SDK expects it in a stream. */
function asStream(part: Content, id: string): readonly Content[] {
  if (part.type !== "text" && part.type !== "reasoning") return [part];
  const { type, text, ...more } = part;
  return [
    { type: `${type}-start`, id },
    { type: `${type}-delta`, id, delta: text },
    { type: `${type}-end`, id, ...more },
  ];
}

/** The whole answer of a stream, for a model that has no other way to answer. */
export async function answerOfStream({ stream }: StreamResult): Promise<ModelResult> {
  const answer = new GatheredAnswer();
  for await (const part of stream) {
    if (part.type === "error") throw part.error;
    answer.add(part);
  }
  return answer.generated();
}

/** The parts of a stream as the content that `doGenerate` would have returned. */
class GatheredAnswer {
  readonly #content: Record<string, unknown>[] = [];
  readonly #open = new Map<string, Record<string, unknown>>();
  #about: Omit<ModelResult, "content"> | undefined;
  #response: ModelResult["response"];
  #warnings: readonly unknown[] = [];

  get length(): number {
    return this.#content.length;
  }

  get warnings(): readonly unknown[] {
    return this.#warnings;
  }

  add(part: Content): "held" | undefined {
    const { type, id, delta, ...fields } = part;
    const [, kind, edge] = words.exec(type) ?? [];
    if (kind !== undefined) {
      this.#words(kind, edge!, id, delta, fields);
      return undefined;
    }
    if (type === "stream-start") this.#warnings = (fields.warnings as readonly unknown[] | undefined) ?? [];
    else if (type === "response-metadata") this.#response = { ...fields, ...(id !== undefined && { id: String(id) }) };
    else if (type === "finish") this.#about = fields as unknown as Omit<ModelResult, "content">;
    else if (!passedOver.has(type)) {
      this.#content.push({ ...part });
      return "held";
    }
    return undefined;
  }

  #words(kind: string, edge: string, id: unknown, delta: unknown, fields: object): void {
    const key = `${kind} ${String(id)}`;
    const known = this.#open.get(key);
    const part: Record<string, unknown> = known ?? { type: kind, text: "" };
    if (known === undefined) {
      this.#content.push(part);
      this.#open.set(key, part);
    }
    if (edge === "delta") part.text = `${part.text as string}${delta as string}`;
    for (const [field, value] of Object.entries(fields)) if (value !== undefined) part[field] = value;
    if (edge === "end") this.#open.delete(key);
  }

  generated(): ModelResult {
    if (this.#about === undefined)
      throw Object.assign(new Error("the stream ended without an end"), { code: "ECONNRESET" });
    const { finishReason, usage, providerMetadata } = this.#about;
    return {
      content: this.#content as unknown as readonly Content[],
      ...{ finishReason, usage, providerMetadata, warnings: this.#warnings },
      ...(this.#response !== undefined && { response: this.#response }),
    };
  }
}

/** The input of a tool while it is typed: the whole call follows. Raw chunks of a provider are not recorded. */
const passedOver = new Set(["tool-input-start", "tool-input-delta", "tool-input-end", "raw", "ping"]);

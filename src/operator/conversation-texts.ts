import type { Message, Part } from "../agent/conversation.ts";
import type { Turn } from "../agent/turn.ts";
import { decode, holdsBlobs, isBlobRef } from "../base/codec.ts";
import type { JournalRecord } from "../model/records.ts";
import { readBlob } from "../store/blob-store.ts";
import type { ReadOps } from "../store/contract/store.ts";

/** Longer values and texts stay beside the journal; a page shows their length. */
const maxBlobBytes = 4 * 1024 * 1024;
/** Of all turns: values that are one reference are read for each page, because sums and tool calls need them. */
const maxValueBytes = 32 * 1024 * 1024;

/**
 * Puts back what a store keeps beside the journal: servers read records whose large parts are references, and people
 * read texts. Stores that put parts back themselves have no references here.
 */
export class ConversationTexts {
  #left = maxValueBytes;
  readonly #read: ReadOps;
  readonly #tenant: string;
  readonly #run: string;

  constructor(read: ReadOps, tenant: string, run: string) {
    this.#read = read;
    this.#tenant = tenant;
    this.#run = run;
  }

  /** A decision whose value is one reference would be a turn without an answer and without tool calls. */
  async record(record: JournalRecord): Promise<JournalRecord> {
    if (!holdsBlobs(record.data)) return record;
    if (record.kind === "fork.kept") {
      const records: unknown[] = [];
      for (const kept of record.data.records) records.push(await this.#whole(kept as unknown as JournalRecord));
      return { ...record, data: { ...record.data, records } } as JournalRecord;
    }
    return await this.#whole(record);
  }

  async #whole(record: JournalRecord): Promise<JournalRecord> {
    if (record.kind !== "decision.made" || !isBlobRef(record.data.value)) return record;
    const { value } = record.data;
    const fits = value.bytes <= maxBlobBytes && value.bytes <= this.#left;
    if (!fits) return { ...record, data: { ...record.data, value: longText(value.bytes) } };
    this.#left -= value.bytes;
    return { ...record, data: { ...record.data, value: await this.#valueOf(value) } };
  }

  async turn(turn: Turn): Promise<Turn> {
    if (![turn.answer, ...turn.messages].some((one) => one?.parts.some(hasBlob))) return turn;
    const messages: Message[] = [];
    for (const message of turn.messages) messages.push(await this.#message(message));
    return { ...turn, messages, ...(turn.answer !== undefined && { answer: await this.#message(turn.answer) }) };
  }

  async #message(message: Message): Promise<Message> {
    const parts: Part[] = [];
    for (const part of message.parts) parts.push(await this.#part(part));
    return { ...message, parts };
  }

  async #part(part: Part): Promise<Part> {
    if (part.type === "file" && isBlobRef(part.data)) {
      const { data, ...rest } = part;
      return { ...rest, bytes: data.bytes };
    }
    if ((part.type !== "text" && part.type !== "reasoning") || !isBlobRef(part.text)) return part;
    const { bytes } = part.text;
    return bytes > maxBlobBytes
      ? { ...part, text: "", cut: bytes }
      : { ...part, text: String(await this.#valueOf(part.text)) };
  }

  async #valueOf(ref: { readonly blob: string; readonly bytes: number }): Promise<unknown> {
    return decode(await readBlob(this.#read, this.#tenant, { run: this.#run }, ref));
  }
}

const longText = (bytes: number) => ({
  message: { role: "assistant", parts: [{ type: "text", text: "", cut: bytes }] },
});

const hasBlob = (part: Part): boolean => isBlobRef(part.type === "file" ? part.data : textOf(part));

const textOf = (part: Part): unknown => (part.type === "text" || part.type === "reasoning" ? part.text : undefined);

/** Characters that the references of a turn will have as texts. */
export function charsBeside({ messages, answer }: Turn): number {
  const parts = [...messages, ...(answer === undefined ? [] : [answer])].flatMap((one) => one.parts);
  return parts.reduce((sum, part) => {
    const text = textOf(part);
    return sum + (isBlobRef(text) && text.bytes <= maxBlobBytes ? text.bytes : 0);
  }, 0);
}

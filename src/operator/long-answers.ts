import type { Part } from "../agent/conversation.ts";
import type { Turn } from "../agent/turn.ts";
import { type BlobRef, decode, holdsBlobs, isBlobRef } from "../base/codec.ts";
import type { JournalRecord, RecordData } from "../model/records.ts";
import { readBlob } from "../store/blob-store.ts";
import type { ReadOps } from "../store/contract/store.ts";

/** Content of a page of a conversation; one turn is always on it. */
export const maxPageChars = 2 * 1024 * 1024;
/** Values that are stored as a whole, of all turns: sums and calls need them, also those of other pages. */
const maxWholeBytes = 16 * 1024 * 1024;

/** Answers with long texts are stored beside the journal. A page of a conversation shows them as far as they fit. */
export class LongAnswers {
  #left = maxWholeBytes;
  readonly #read: Pick<ReadOps, "blob">;
  readonly #tenant: string;
  readonly #run: string;

  constructor(read: Pick<ReadOps, "blob">, tenant: string, run: string) {
    this.#read = read;
    this.#tenant = tenant;
    this.#run = run;
  }

  /** Puts a value back that is stored as a whole, in place: a decoded record belongs to its reader. */
  async open(record: JournalRecord): Promise<void> {
    if (!holdsBlobs(record.data)) return;
    const kept = record.kind === "fork.kept" ? record.data.records : [record];
    for (const { kind, data } of kept) {
      if (kind !== "decision.made") continue;
      const decision = data as { -readonly [Field in keyof RecordData<"decision.made">]: unknown };
      const { value } = decision;
      if (isBlobRef(value)) decision.value = await this.#restored(value);
    }
  }

  async #restored(value: BlobRef): Promise<unknown> {
    if (value.bytes > this.#left) return { message: { role: "assistant", parts: [], cut: true } };
    this.#left -= value.bytes;
    return decode(await this.#text(value));
  }

  async turn(turn: Turn): Promise<Turn> {
    const { answer } = turn;
    if (answer === undefined || !answer.parts.some(isLong)) return turn;
    const parts: Part[] = [];
    for (const part of answer.parts) parts.push(await this.#part(part));
    return { ...turn, answer: { ...answer, parts } };
  }

  async #part(part: Part): Promise<Part> {
    if (!isLong(part)) return part;
    const { bytes } = part.text;
    if (bytes > maxPageChars) return { ...part, text: "", cut: bytes };
    return { ...part, text: String(decode(await this.#text(part.text))) };
  }

  #text(ref: BlobRef): Promise<string> {
    return readBlob(this.#read, this.#tenant, { run: this.#run }, ref);
  }
}

type TextPart = Extract<Part, { type: "text" | "reasoning" }>;

/** A text part whose text is a reference. */
function isLong(part: Part): part is TextPart & { readonly text: string & BlobRef } {
  return (part.type === "text" || part.type === "reasoning") && isBlobRef(part.text);
}

/** Characters that a turn adds to a page. */
export function charsOf({ messages, answer, calls }: Turn): number {
  const long = answer?.parts.filter(isLong) ?? [];
  const text = JSON.stringify([messages, answer, calls]) ?? "";
  return long.reduce((sum, { text: { bytes } }) => sum + bytes, text.length);
}

import { types } from "node:util";
import { BlobRef, type BlobType, decode, encode, holdsBlobs, isBlobRef, sizeOf } from "../base/codec.ts";
import { hash } from "../base/late-builtins.ts";
import { TapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";
import type { LeaseTarget } from "../model/lease.ts";
import type { JournalRecord, NewRecord } from "../model/records.ts";
import type { AppendRequest, FencedOps, ReadOps, Store } from "./contract/store.ts";
import { pageOf } from "./page.ts";
import { blobChunkChars, blobTooLarge } from "./validate/blobs.ts";

/**
 * A store whose callers know nothing of blobs: large parts of recorded values are stored beside the record when it is
 * appended, and put back when it is read. What stands between this and the database (a server, a feed, a sink) handles
 * references. A record without a large part costs one walk over its values.
 */
export function withBlobs<S extends Store>(store: S): S {
  if (inners.has(store)) return store;
  const outer = { ...store, fenced: blobWrites(store), read: blobReads(store.read) };
  inners.set(outer, store);
  return outer;
}

/** The store with references, for what passes records on. */
export const withoutBlobs = (store: Store): Store => inners.get(store) ?? store;

/** Whether this store takes values that are larger than a record. */
export const splitsValues = (store: Store): boolean => inners.has(store);

const inners = new WeakMap<Store, Store>();

/** The same methods, some of them replaced. The others are looked up at each call, as they would be without this. */
function replacing<G extends object>(group: G, own: Partial<G>): G {
  const outer = {} as G;
  for (const key of Object.keys(group) as (keyof G)[]) {
    if (key in own) outer[key] = own[key]!;
    else Object.defineProperty(outer, key, { enumerable: true, get: () => group[key] });
  }
  return outer;
}

/** Characters of a part that becomes a blob: below that, another row costs more than it saves. */
export const partChars = 64 * 1024;
/** What is left of a field after its parts; a field with more than this becomes a blob as a whole. */
const restChars = 1024 * 1024;

/** The fields of a run's own records with values of any size. Other kinds also change rows, which have their own limits. */
const fields: Readonly<Record<string, readonly string[]>> = {
  "run.continued": ["input"],
  "step.done": ["value"],
  "sample.taken": ["value"],
  "decision.made": ["value", "request", "response"],
};

/** Whether such a store takes one here. */
export const mayBeBlob = (kind: string, field: string): boolean => fields[kind]?.includes(field) === true;

/** A part and its text. */
interface Part {
  readonly ref: BlobRef;
  readonly text: string;
}

function blobWrites({ fenced, limits }: Store): FencedOps {
  const put = async (fence: Fence, { ref, text }: Part): Promise<void> => {
    if (ref.bytes > limits.blobBytes) throw blobTooLarge(limits);
    const chunks = chunksOf(text);
    for (const [n, chunk] of chunks.entries()) {
      await fenced.putBlob(fence, { blob: ref.blob, n, chunks: chunks.length, text: chunk });
    }
  };
  const stored = async (fence: Fence, entry: AppendRequest): Promise<AppendRequest> => {
    const parts = new Map<string, Part>();
    const records = entry.records.map((record) => withoutParts(record, parts));
    for (const part of parts.values()) await put(fence, part);
    return { ...entry, records };
  };
  return replacing(fenced, {
    append: (fence, entry) =>
      hasParts(entry) ? stored(fence, entry).then((small) => fenced.append(fence, small)) : fenced.append(fence, entry),
    async appendAll(batch) {
      if (!Array.isArray(batch) || !batch.some((item) => hasParts(item?.[1]))) return fenced.appendAll(batch);
      const small = batch.map(
        async ([fence, entry]) => [fence, hasParts(entry) ? await stored(fence, entry) : entry] as const,
      );
      return fenced.appendAll(await Promise.all(small));
    },
  });
}

/** An entry that is not one is left to the store, which rejects it. */
function hasParts(entry: AppendRequest | undefined): boolean {
  const { records } = entry ?? {};
  return Array.isArray(records) && records.some((record) => record?.data != null && isLarge(record));
}

function isLarge({ kind, data }: NewRecord): boolean {
  if (kind === "fork.kept") return data.records.some((kept) => isLarge(kept as NewRecord));
  return (fields[kind] ?? []).some((field) => {
    const value = (data as Readonly<Record<string, unknown>>)[field];
    if (typeof value !== "object" || value === null) return typeof value === "string" && value.length > partChars;
    try {
      const { rest, parts } = weigh(value);
      return parts || rest > restChars;
    } catch {
      return false; // a getter or a proxy that throws: the append rejects it with the reason
    }
  });
}

/** Characters outside large parts, and whether there is one. An estimate: the codec decides what can be stored. */
function weigh(value: unknown, above: object[] = []): { readonly rest: number; readonly parts: boolean } {
  if (typeof value === "string")
    return value.length > partChars ? { rest: 0, parts: true } : { rest: value.length + 3, parts: false };
  if (typeof value !== "object" || value === null) return { rest: 8, parts: false };
  if (types.isUint8Array(value)) {
    const chars = (value.byteLength * 4) / 3;
    return chars > partChars ? { rest: 0, parts: true } : { rest: chars, parts: false };
  }
  let rest = 2;
  let parts = false;
  // The codec rejects a cycle and what is deeper. In a cycle with two ways, each level would double the work.
  if (above.length > maxDepth || above.includes(value)) return { rest, parts };
  above.push(value);
  const items = value instanceof Map || value instanceof Set ? [...value] : undefined;
  for (const key in items ?? value) {
    const found = weigh((items ?? (value as Record<string, unknown>))[key as never], above);
    rest += found.rest + key.length + 4;
    parts ||= found.parts;
  }
  above.pop();
  return { rest, parts };
}

/** Deeper values are no plain data; the codec rejects them. */
const maxDepth = 200;

function withoutParts(record: NewRecord, parts: Map<string, Part>): NewRecord {
  if (!isLarge(record)) return record;
  if (record.kind === "fork.kept") {
    const records = record.data.records.map((kept) => withoutParts(kept as NewRecord, parts));
    return { ...record, data: { ...record.data, records } } as NewRecord;
  }
  const data: Record<string, unknown> = { ...record.data };
  for (const field of fields[record.kind]!) {
    if (data[field] === undefined) continue;
    data[field] = split(data[field], parts);
  }
  return { ...record, data } as NewRecord;
}

function split(value: unknown, parts: Map<string, Part>): unknown {
  try {
    return weigh(value).rest > restChars ? partOf(value, "value", parts) : replaced(value, parts);
  } catch {
    return value; // a cycle, or a getter that throws the second time: the append rejects it with the reason
  }
}

/** A copy in which references stand for large parts. Only plain containers are opened. */
function replaced(value: unknown, parts: Map<string, Part>): unknown {
  if (typeof value === "string") return value.length > partChars ? partOf(value, "text", parts) : value;
  if (typeof value !== "object" || value === null) return value;
  if (types.isUint8Array(value)) return (value.byteLength * 4) / 3 > partChars ? partOf(value, "bytes", parts) : value;
  if (Array.isArray(value)) return value.map((item) => replaced(item, parts));
  const proto = Object.getPrototypeOf(value);
  if (proto !== Object.prototype && proto !== null) return weigh(value).parts ? partOf(value, "value", parts) : value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, replaced(item, parts)]));
}

function partOf(value: unknown, type: BlobType, parts: Map<string, Part>): unknown {
  let text: string;
  try {
    text = encode(value);
  } catch {
    return value; // the append rejects it with the reason
  }
  const ref = new BlobRef(hash("sha256", text, "hex"), sizeOf(text), type);
  parts.set(ref.blob, { ref, text });
  return ref;
}

/** The text in chunks; none ends within a pair of surrogates. */
export function chunksOf(text: string): string[] {
  const chunks: string[] = [];
  for (let from = 0; from < text.length; ) {
    let to = Math.min(text.length, from + blobChunkChars);
    if (to < text.length && (text.charCodeAt(to - 1) & 0xfc00) === 0xd800) to--;
    chunks.push(text.slice(from, to));
    from = to;
  }
  return chunks;
}

function blobReads(read: ReadOps): ReadOps {
  return replacing(read, {
    async journal(tenant, target, page) {
      const records = await read.journal(tenant, target, page);
      if (!records.some(({ data }) => holdsBlobs(data))) return records;
      const whole: JournalRecord[] = [];
      for (const record of records) whole.push(await wholeRecord(read, tenant, target, record));
      return pageOf(whole, records.more ?? false);
    },
  });
}

async function wholeRecord(
  read: ReadOps,
  tenant: string,
  target: LeaseTarget,
  record: JournalRecord,
): Promise<JournalRecord> {
  if (!holdsBlobs(record.data)) return record;
  const kept =
    record.kind === "fork.kept" ? record.data.records.map((one) => one as unknown as JournalRecord) : [record];
  for (const { kind, data } of kept) {
    for (const field of fields[kind] ?? []) {
      const values = data as unknown as Record<string, unknown>;
      if (values[field] !== undefined) values[field] = await restored(read, tenant, target, values[field]);
    }
  }
  return record;
}

/** Puts the parts back, in place: a decoded value belongs to its reader. */
async function restored(read: ReadOps, tenant: string, target: LeaseTarget, value: unknown): Promise<unknown> {
  if (isBlobRef(value)) return decode(await readBlob(read, tenant, target, value));
  if (typeof value !== "object" || value === null) return value;
  for (const [key, item] of Object.entries(value)) {
    if (typeof item !== "object" || item === null) continue;
    const whole = await restored(read, tenant, target, item);
    if (whole !== item) (value as Record<string, unknown>)[key] = whole;
  }
  return value;
}

/** The text of a blob. A record implies its blobs, so a missing or a changed one is damage. */
export async function readBlob(
  read: Pick<ReadOps, "blob">,
  tenant: string,
  target: LeaseTarget,
  { blob, bytes }: Pick<BlobRef, "blob" | "bytes">,
): Promise<string> {
  const texts: string[] = [];
  for (let n = 0, chunks = 1; n < chunks; n++) {
    const chunk = await read.blob(tenant, target, blob, n);
    if (chunk === undefined) throw damaged(blob, `chunk ${n} is missing`);
    chunks = chunk.chunks;
    texts.push(chunk.text);
  }
  const text = texts.join("");
  if (sizeOf(text) !== bytes || hash("sha256", text, "hex") !== blob) throw damaged(blob, "its text has changed");
  return text;
}

const damaged = (blob: string, what: string): TapeError =>
  new TapeError("TAPE_JOURNAL_DAMAGED", `blob ${blob} of the journal: ${what}`, { blob });

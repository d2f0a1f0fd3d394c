import { encode } from "../base/codec.ts";
import { spanContextOfRun } from "../engine/journal/spans.ts";
import { type RecordKind, recordVersion } from "../model/records.ts";
import type { FeedRecord, Subject, SubjectRun } from "../store/contract/store.ts";
import { factsOf } from "./facts.ts";
import { wantsOf } from "./wants.ts";

/**
 * A record and what it is about, as CloudEvents 1.0 names it. Nothing in it depends on the process that sends it, except
 * `tapetoken`.
 */
export interface TapeEvent {
  /** The version of CloudEvents. */
  readonly specversion: "1.0";
  /** Names the record, also across a restore of the store: the same on every repeat, and never that of another record. */
  readonly id: string;
  /** `/tape/STORE/TENANT`. */
  readonly source: string;
  /** `dev.tape.` and the kind of the record. */
  readonly type: string;
  /** The id of the run, or the name of the lease. */
  readonly subject?: string;
  /** When the record was written, by the store's clock. */
  readonly time: string;
  /** The media type of `data`. */
  readonly datacontenttype: "application/json";
  /** Names the JSON Schema of `data`: `urn:tape:event:KIND:VERSION`, in `durable-tape/events.schema.json`. */
  readonly dataschema: string;
  /** The id of the root run: a receiver that keeps the order of a partition keeps that of the whole tree. */
  readonly partitionkey: string;
  /** The record's number in its journal, padded: texts have the order of the numbers. */
  readonly sequence: string;
  /** The store's epoch: how often it was restored. */
  readonly tapeepoch: number;
  /** The number of the journal, as text. */
  readonly tapejournal: string;
  /** The token of the fan-out's term: a receiver may refuse events with a lower one than it has seen. */
  readonly tapetoken: string;
  /** An operator had it sent again. */
  readonly tapereplayed?: true;
  /** The reactor that the record gives work to: the name that a push handler reads. */
  readonly tapewants?: string;
  /** Of the trace that all spans of the run belong to. */
  readonly traceparent?: string;
  /** What the record is about, and the record. */
  readonly data: EventData;
}

/** Whose record it is, and the record. */
export interface EventData {
  /** The run that the record is about. */
  readonly run?: SubjectRun;
  /** The effect of an item. */
  readonly item?: NonNullable<Subject["item"]>;
  /** The name of a lease. */
  readonly lease?: string;
  readonly record?: EventRecord;
  /** Of `store.restored`: how often the store was restored. */
  readonly storeEpoch?: number;
}

/** A record in an event. `data` has all of it, its facts, or is absent, by the sink's `payload`. */
export interface EventRecord {
  readonly kind: string;
  readonly seq: number;
  /** It is a note of the inbox. */
  readonly inbox: boolean;
  readonly at: number;
  readonly token: string;
  /** The data of the record, as the sink's `payload` allows. */
  readonly data?: unknown;
}

/** How much of a record an event has: all values, everything but the values of users, or only its kind. */
export const payloads = ["facts", "values", "none"] as const;
/** How much of a record an event has: all of it, its facts, or nothing but its kind. */
export type Payload = (typeof payloads)[number];

/** What all events of a term have in common. `storeEpoch`: how often the store was restored. */
export interface EventContext {
  readonly source: string;
  readonly tenant: string;
  readonly storeEpoch: number;
  readonly token: bigint;
  readonly payload: Payload;
}

export const sourceOf = (storeId: string, tenant: string): string =>
  `/tape/${encodeURIComponent(storeId)}/${encodeURIComponent(tenant)}`;

/** No dot: Standard Webhooks signs `id.timestamp.body`. With its time, because a restored store numbers records again. */
export const eventIdOf = ({ journal, seq, at, in: where }: EventSource): string =>
  `${journal}${where === "inbox" ? "i" : ""}:${seq}:${at}`;

/** A record of the feed, without its cursor. */
export type EventSource = Omit<FeedRecord, "cursor">;

/** `trace`: the run's, see {@link traceOf}. */
export function eventOf(
  record: EventSource,
  subject: Subject | undefined,
  trace: string | undefined,
  context: EventContext,
): TapeEvent {
  const { journal, seq, at, kind } = record;
  const { run, item, name } = subject ?? {};
  const about = run?.id ?? name;
  const wants = wantsOf(record);
  return {
    ...attributesOf(context, kind, at),
    id: eventIdOf(record),
    ...(about !== undefined && { subject: about }),
    partitionkey: run?.root ?? name ?? `journal ${journal}`,
    sequence: String(seq).padStart(10, "0"),
    tapejournal: String(journal),
    ...(wants !== undefined && { tapewants: wants }),
    ...(trace !== undefined && { traceparent: trace }),
    data: {
      ...(run && { run }),
      ...(item && { item }),
      ...(name !== undefined && { lease: name }),
      record: recordOf(record, context.payload),
    },
  };
}

export const restoredKind = "store.restored";

/** The value of `dataschema`, and the `$id` of the schema of this kind. Another version has another one. */
export const schemaUriOf = (kind: string): string => `urn:tape:event:${kind}:${recordVersion}`;

/** The store was restored: events since its backup may describe what has not happened. */
export function restoredEvent(context: EventContext, at: number): TapeEvent {
  const { storeEpoch } = context;
  return {
    ...attributesOf(context, restoredKind, at),
    id: `restored:${storeEpoch}`,
    partitionkey: "store",
    sequence: String(storeEpoch).padStart(10, "0"),
    tapejournal: "1",
    data: { storeEpoch },
  };
}

let lastTime = { at: 0, text: new Date(0).toISOString() };

/** Records of one transaction have the same time, and a time takes longer to write than the rest of an event. */
function timeOf(at: number): string {
  if (at !== lastTime.at) lastTime = { at, text: new Date(at).toISOString() };
  return lastTime.text;
}

function attributesOf({ source, storeEpoch, token }: EventContext, kind: string, at: number) {
  return {
    specversion: "1.0",
    source,
    type: `dev.tape.${kind}`,
    time: timeOf(at),
    datacontenttype: "application/json",
    dataschema: schemaUriOf(kind),
    tapeepoch: storeEpoch,
    tapetoken: String(token),
  } as const;
}

function recordOf({ kind, seq, at, token, in: where, data }: EventSource, payload: Payload): EventRecord {
  const inbox = where === "inbox";
  const text = String(token);
  if (payload === "none") return { kind, seq, inbox, at, token: text };
  const shown = payload === "values" ? jsonOf(data) : factsOf(kind as RecordKind, data);
  return { kind, seq, inbox, at, token: text, data: shown };
}

/** As the codec writes it: values beyond JSON are in its envelopes. */
const jsonOf = (data: unknown): unknown => JSON.parse(encode(data)) as unknown;

/** The trace that all spans of the run belong to. */
export function traceOf(tenant: string, run: string): string {
  const { traceId, spanId } = spanContextOfRun(tenant, run);
  return `00-${traceId}-${spanId}-01`;
}

/** Without values an event is small: its size need not be measured. */
const factsBytes = 1_024;

/** About how many bytes the event takes on the wire. */
export const sizeOf = (event: TapeEvent, payload: Payload): number =>
  payload === "values" ? Buffer.byteLength(JSON.stringify(event)) : factsBytes;

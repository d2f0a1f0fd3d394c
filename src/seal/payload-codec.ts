import type { Awaitable } from "../base/chain.ts";
import { TapeError } from "../model/errors.ts";

/** What a payload is and where it belongs. */
export interface PayloadContext {
  readonly tenant: string;
  /**
   * The owner of the payload: `run:ID`, `value:KEY`, `schedule:ID`, or `debounce:WORKFLOW` for inputs that may still move
   * to another run. Bind the ciphertext to tenant and place, so that it cannot be moved to another.
   */
  readonly place: string;
  /** The kind of record, or `value`, `schedule`, `chunk`. Not to be bound: records copy payloads of each other. */
  readonly kind: string;
  /** The field of the record, such as `input` or `error`. */
  readonly field: string;
  /** Where the payload belongs to a run. When it is encoded, all three are given; when it is decoded, the id. */
  readonly run?: string;
  readonly workflow?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** A payload as a codec returns it. */
export interface EncodedPayload {
  /** The id of the key: 1 to 100 letters, digits or `. : @ / + = _ -`. Stored in clear. */
  readonly key: string;
  /** The encoded bytes. */
  readonly data: Uint8Array;
}

/**
 * Encodes payloads before they leave the process, and decodes them when they come back. Stores, servers, feeds and sinks
 * only see the encoded form. {@link aesGcm} is one.
 */
export interface PayloadCodec {
  /** Encodes one payload. */
  encode(payload: Uint8Array, context: PayloadContext): Awaitable<EncodedPayload>;
  /** Throws {@link keyUnknown} for a key that it does not have, {@link payloadRefused} for bytes that it does not accept. */
  decode(payload: EncodedPayload, context: PayloadContext): Awaitable<Uint8Array>;
  /**
   * A keyed hash, for what stores compare: business keys, inputs, arguments. Equal texts in one scope must have equal
   * hashes for as long as the store exists, whichever key is current.
   */
  hash(text: string, scope: { readonly tenant: string; readonly scope: string }): Awaitable<string>;
}

/** What is recorded in place of a payload. Pure and idempotent: `redact(redact(x))` equals `redact(x)`. */
export type RedactPayload = (payload: unknown, context: Omit<PayloadContext, "labels">) => unknown;

/**
 * The error of a codec that does not have a key.
 *
 * @example
 * if (!(id in keys)) throw keyUnknown(id);
 */
export const keyUnknown = (key: string): TapeError =>
  new TapeError("TAPE_KEY_UNKNOWN", `the codec does not have the key ${key}`, { key });

/**
 * The error of a codec that has the key, but does not accept the bytes.
 *
 * @example
 * throw payloadRefused(id, context, cause);
 */
export const payloadRefused = (key: string, context: Pick<PayloadContext, "place">, cause?: unknown): TapeError =>
  new TapeError(
    "TAPE_PAYLOAD_REFUSED",
    `a payload of ${context.place} is not what key ${key} has encrypted for it`,
    { key, place: context.place },
    cause,
  );

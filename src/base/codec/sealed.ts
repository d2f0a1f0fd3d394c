import { inspect } from "node:util";

/** Found by this symbol, not by `instanceof`: two copies of this package may meet in one process. */
const mark = Symbol.for("durable-tape.sealed");

/** What the stored text of a sealed payload holds. `place`: what it belongs to, such as `run:pay-7`. */
export interface SealedFields {
  readonly key: string;
  /** Where the payload belongs; the codec checks it. */
  readonly place: string;
  /** The ciphertext, in base64. */
  readonly data: string;
  /** A keyed hash of the payload, where stores compare payloads: of a run's input. */
  readonly hash?: string | undefined;
}

/** Why this process could not open it. */
export interface SealedProblem {
  readonly code: "TAPE_KEY_UNKNOWN" | "TAPE_PAYLOAD_REFUSED";
  readonly message: string;
}

/**
 * A payload that a payload codec has encoded, for example encrypted. Stores, servers, feeds and sinks handle it like
 * any value; it is written and read as it is. A program gets one in place of a value that it cannot decode.
 *
 * @example
 * const shown = (value: unknown) => (value instanceof SealedPayload ? "encrypted" : value);
 */
export class SealedPayload implements SealedFields {
  /** The id of the key. */
  readonly key: string;
  /** Where the payload belongs; the codec checks it. */
  readonly place: string;
  /** The encoded bytes, as base64. */
  readonly data: string;
  /** The hash by which equal payloads are recognised. */
  readonly hash: string | undefined;
  /** Not stored. undefined: nothing has tried to open it. */
  readonly problem: SealedProblem | undefined;

  constructor({ key, place, data, hash }: SealedFields, problem?: SealedProblem) {
    this.key = key;
    this.place = place;
    this.data = data;
    this.hash = hash;
    this.problem = problem;
  }

  /** Marks the class in JSON. */
  get [mark](): true {
    return true;
  }

  /** What people see without the key. */
  toJSON(): { readonly encrypted: string } {
    return { encrypted: this.key };
  }

  /** A text without the payload. */
  toString(): string {
    return `[encrypted with key ${this.key}]`;
  }

  /** A text without the payload, for logs. */
  [inspect.custom](): string {
    return this.toString();
  }
}

/**
 * Whether a value is a payload that this process cannot decode.
 *
 * @example
 * const total = isSealed(run.outcome) ? "hidden" : run.outcome;
 */
export function isSealed(value: unknown): value is SealedPayload {
  return typeof value === "object" && value !== null && (value as { [mark]?: unknown })[mark] === true;
}

/** Bounds of the envelope, besides those of a payload: a key's id, and a place, which holds a name and its kind. */
const keyPattern = /^[\w.:@/+=-]{1,100}$/;
const maxPlaceChars = 2_100;

/** Why these are not the fields of a sealed payload; undefined: they are. */
export function sealedFault(fields: Partial<Record<keyof SealedFields, unknown>>): string | undefined {
  const { key, place, data, hash } = fields;
  if (typeof key !== "string" || !keyPattern.test(key)) {
    return "a key's id has 1 to 100 letters, digits or . : @ / + = _ -";
  }
  if (typeof place !== "string" || place.length > maxPlaceChars) return "the place is missing or too long";
  if (typeof data !== "string" || !/^[A-Za-z0-9+/]*={0,2}$/.test(data)) return "the data is not base64";
  if (hash !== undefined && (typeof hash !== "string" || !/^[\w:]{1,100}$/.test(hash))) return "the hash is malformed";
  return undefined;
}

import { fingerprint } from "../base/canonical.ts";
import { type Awaitable, chain } from "../base/chain.ts";
import { decode, encode, isSealed, SealedPayload, sealedFault } from "../base/codec.ts";
import { isTapeError, TapeError } from "../model/errors.ts";
import type { Limits } from "../model/limits.ts";
import { hashPrefix, isHashed } from "../model/payloads.ts";
import { mayBeBlob } from "../store/blob-store.ts";
import { checkPayload } from "../store/validate/entry.ts";
import type { EncodedPayload, PayloadCodec, PayloadContext, RedactPayload } from "./payload-codec.ts";

/** Where a payload was found, and which places may own it there. */
export interface FoundAt extends Pick<PayloadContext, "tenant" | "kind" | "field"> {
  readonly places: readonly string[];
}

interface SealOptions {
  /** With a keyed hash of the payload in clear. */
  readonly hashed?: boolean;
  /** A text that is sealed with it. */
  readonly also?: string | undefined;
}

interface OpenedPayload {
  readonly value: unknown;
  readonly also?: string;
}

/** A sealed payload in a field of text: `sealed:1:` and the envelope as JSON. */
const textPrefix = "sealed:1:";

export const runPlace = (id: string): string => `run:${id}`;
export const valuePlace = (key: string): string => `value:${key}`;
export const schedulePlace = (id: string): string => `schedule:${id}`;
export const debouncePlace = (workflow: string): string => `debounce:${workflow}`;

const runOf = (place: string): string | undefined => (place.startsWith("run:") ? place.slice(4) : undefined);

/** Redacts, seals and opens single payloads. */
export class PayloadCoder {
  readonly #codec: PayloadCodec | undefined;
  readonly #redact: RedactPayload | undefined;
  readonly #limits: Limits;
  /** For values that the store splits after they are sealed. */
  readonly #blobLimits: Limits;

  constructor(
    codec: PayloadCodec | undefined,
    redact: RedactPayload | undefined,
    limits: Limits,
    { splits = false }: { readonly splits?: boolean } = {},
  ) {
    this.#codec = codec;
    this.#redact = redact;
    this.#limits = limits;
    this.#blobLimits = splits ? { ...limits, payloadBytes: limits.blobBytes } : limits;
  }

  /** The payload as stores get it. */
  seal(payload: unknown, context: PayloadContext, { hashed = false, also }: SealOptions = {}): Awaitable<unknown> {
    if ((payload === undefined && also === undefined) || isSealed(payload)) return payload;
    const value = this.redacted(payload, context);
    const codec = this.#codec;
    const limits = mayBeBlob(context.kind, context.field) ? this.#blobLimits : this.#limits;
    const text = checkPayload(context.field, () => encode(value), limits);
    if (codec === undefined) return value;
    // JSON has no line feeds: what comes before one is not the payload.
    const whole = also === undefined ? text : `${JSON.stringify(also)}\n${text}`;
    const encoded = attempt(() => codec.encode(Buffer.from(whole), context));
    return chain(encoded, (done) => {
      if (!hashed) return this.#sealed(done, context);
      return chain(this.hash(fingerprint(value), context.tenant, context.place), (hash) =>
        this.#sealed(done, context, hash),
      );
    });
  }

  #sealed(encoded: EncodedPayload, { place }: PayloadContext, hash?: string): SealedPayload {
    const { key, data } = encoded ?? {};
    if (!(data instanceof Uint8Array)) throw failed(new TypeError("encode returns { key, data }, with data as bytes"));
    const fields = { key, place, data: Buffer.from(data).toString("base64"), hash };
    const fault = sealedFault(fields);
    if (fault !== undefined) throw failed(new TypeError(`encode: ${fault}`));
    return new SealedPayload(fields);
  }

  redacted(payload: unknown, context: PayloadContext): unknown {
    if (this.#redact === undefined || payload === undefined || isSealed(payload)) return payload;
    const { labels: _labels, ...about } = context;
    return this.#redact(payload, about);
  }

  sealText(text: string, context: PayloadContext): Awaitable<string> {
    if (text.startsWith(textPrefix)) return text;
    return chain(this.seal(text, context), (sealed) =>
      isSealed(sealed) ? textPrefix + encode(sealed) : String(sealed),
    );
  }

  /** The payload as programs get it. What this process cannot open stays sealed, with the reason. */
  async open(stored: unknown, at: FoundAt): Promise<unknown> {
    return (await this.openBoth(stored, at)).value;
  }

  /** The same, with what was sealed beside it. */
  async openBoth(stored: unknown, at: FoundAt): Promise<OpenedPayload> {
    if (!isSealed(stored) || this.#codec === undefined) return { value: stored };
    const { key, place } = stored;
    if (!at.places.includes(place)) {
      const message = `a payload of ${place} was found as ${at.kind} ${at.field} of another owner`;
      return { value: new SealedPayload(stored, { code: "TAPE_PAYLOAD_REFUSED", message }) };
    }
    const run = runOf(place);
    const { tenant, kind, field } = at;
    const context = { tenant, kind, field, place, ...(run !== undefined && { run }) };
    try {
      const bytes = await attempt(() =>
        this.#codec!.decode({ key, data: Buffer.from(stored.data, "base64") }, context),
      );
      if (!(bytes instanceof Uint8Array)) throw failed(new TypeError("decode returns bytes"));
      return openedText(Buffer.from(bytes).toString("utf8"));
    } catch (error) {
      if (!isTapeError(error)) throw error;
      if (error.code !== "TAPE_KEY_UNKNOWN" && error.code !== "TAPE_PAYLOAD_REFUSED") throw error;
      return {
        value: new SealedPayload(stored, { code: error.code, message: error.message.replace(/^TAPE_\w+: /, "") }),
      };
    }
  }

  async openText(stored: string, at: FoundAt): Promise<string> {
    if (!stored.startsWith(textPrefix)) return stored;
    let sealed: unknown;
    try {
      sealed = decode(stored.slice(textPrefix.length));
    } catch {
      return stored;
    }
    return String(await this.open(sealed, at));
  }

  /** What stores compare in place of the text. */
  hash(text: string, tenant: string, scope: string): Awaitable<string> {
    if (this.#codec === undefined || isHashed(text)) return text;
    return chain(
      attempt(() => this.#codec!.hash(text, { tenant, scope })),
      (hash) => {
        if (/^\w{16,80}$/.test(hash)) return hashPrefix + hash;
        throw failed(new TypeError("hash returns 16 to 80 letters or digits"));
      },
    );
  }
}

function openedText(text: string): OpenedPayload {
  const end = text.indexOf("\n");
  if (end < 0) return { value: decode(text) };
  return { value: decode(text.slice(end + 1)), also: JSON.parse(text.slice(0, end)) as string };
}

const failed = (cause: unknown): TapeError => new TapeError("TAPE_CODEC_FAILED", "the payload codec failed", {}, cause);

/** Errors of the codec's own become TAPE_CODEC_FAILED: what they say may name keys and addresses. */
function attempt<T>(work: () => Awaitable<T>): Awaitable<T> {
  const mapped = (error: unknown): never => {
    throw isTapeError(error) ? error : failed(error);
  };
  try {
    const value = work();
    return value instanceof Promise ? value.catch(mapped) : value;
  } catch (error) {
    return mapped(error);
  }
}

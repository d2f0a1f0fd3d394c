import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";
import { type Awaitable, chain } from "../base/chain.ts";
import { type Random, systemRandom } from "../base/random.ts";
import { TapeError } from "../model/errors.ts";
import { keyUnknown, type PayloadCodec, type PayloadContext, payloadRefused } from "./payload-codec.ts";

/** Keys by id, or a function that finds them, for example in a key service. 32 bytes each. */
export type KeySource =
  | Readonly<Record<string, Uint8Array>>
  | ((id: string, context: PayloadContext) => Awaitable<Uint8Array | undefined>);

/** Keys, and which of them encrypts what. */
export interface AesGcmOptions {
  /** All keys that may still have to decrypt something. */
  readonly keys: KeySource;
  /** The id of the key that encrypts from now on. */
  readonly current?: string;
  /** In place of `current`: the id of the key for this payload, for example one for each tenant or each customer. */
  readonly keyFor?: (context: PayloadContext) => Awaitable<string>;
  /**
   * At least 32 bytes, for hashes of business keys and inputs. Never change it: with another one an effect whose
   * business key is taken would be sent again.
   */
  readonly hashKey: Uint8Array;
  readonly random?: Random;
}

const nonceBytes = 12;
const tagBytes = 16;
const keyBytes = 32;

/**
 * AES-256-GCM with random nonces. Each place has a key of its own, derived from the named one, so the number of payloads
 * of one key is not limited by its nonces. Tenant, place and key id are authenticated: a ciphertext that was moved to
 * another run or tenant is refused.
 *
 * @example
 * const codec = aesGcm({ keys: { "2026-11": key }, current: "2026-11", hashKey });
 * await using app = await Tape.open({ store: "sqlite:./tape.db", runner, codec });
 */
export function aesGcm(options: AesGcmOptions): PayloadCodec {
  const { random = systemRandom, hashKey } = options;
  const [keyOf, idFor] = [keySource(options.keys), idSource(options)];
  if (!(hashKey instanceof Uint8Array) || hashKey.length < keyBytes)
    throw bad("hashKey", "hashKey has at least 32 bytes");
  return {
    encode: (payload, context) =>
      chain(idFor(context), (id) =>
        chain(keyOf(id, context), (key) => ({ key: id, data: encrypt(key, id, payload, context, random) })),
      ),
    decode: ({ key: id, data }, context) =>
      chain(keyOf(id, context), (key) => decrypt(key, id, Buffer.from(data), context)),
    hash: (text, { tenant, scope }) =>
      createHmac("sha256", hashKey)
        .update(JSON.stringify(["tape hash 1", tenant, scope, text]))
        .digest("hex"),
  };
}

function encrypt(key: Uint8Array, id: string, payload: Uint8Array, context: PayloadContext, random: Random): Buffer {
  const nonce = random.bytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", placeKey(key, id, context), nonce, { authTagLength: tagBytes });
  return Buffer.concat([nonce, cipher.update(payload), cipher.final(), cipher.getAuthTag()]);
}

function decrypt(key: Uint8Array, id: string, data: Buffer, context: PayloadContext): Buffer {
  const end = data.length - tagBytes;
  if (end < nonceBytes) throw payloadRefused(id, context);
  const nonce = data.subarray(0, nonceBytes);
  const cipher = createDecipheriv("aes-256-gcm", placeKey(key, id, context), nonce, { authTagLength: tagBytes });
  cipher.setAuthTag(data.subarray(end));
  try {
    return Buffer.concat([cipher.update(data.subarray(nonceBytes, end)), cipher.final()]);
  } catch (error) {
    throw payloadRefused(id, context, error);
  }
}

/** Derived from everything that the ciphertext is bound to, which therefore is authenticated with it. */
const placeKey = (key: Uint8Array, id: string, { tenant, place }: PayloadContext): Buffer =>
  createHmac("sha256", key)
    .update(JSON.stringify(["tape payload 1", id, tenant, place]))
    .digest();

function keySource(keys: KeySource): (id: string, context: PayloadContext) => Awaitable<Uint8Array> {
  const found = (id: string) => (key: Uint8Array | undefined) => {
    if (key === undefined) throw keyUnknown(id);
    if (key instanceof Uint8Array && key.length === keyBytes) return key;
    throw bad("keys", `the key ${id} does not have ${keyBytes} bytes`);
  };
  if (typeof keys === "function") return (id, context) => chain(keys(id, context), found(id));
  if (typeof keys !== "object" || keys === null) throw bad("keys", "keys is an object of keys by id, or a function");
  const byId = new Map(Object.entries(keys));
  for (const [id, key] of byId) found(id)(key);
  return (id) => found(id)(byId.get(id));
}

function idSource({ current, keyFor, keys }: AesGcmOptions): (context: PayloadContext) => Awaitable<string> {
  if (keyFor !== undefined) return keyFor;
  if (current === undefined) throw bad("current", "current names the key that encrypts; or pass keyFor");
  if (typeof keys === "object" && keys !== null && !Object.hasOwn(keys, current)) {
    throw bad("current", `keys has no key ${current}`);
  }
  return () => current;
}

const bad = (field: string, message: string): TapeError =>
  new TapeError("TAPE_BAD_INPUT", `aesGcm: ${message}`, { field });

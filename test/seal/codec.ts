import { createHash } from "node:crypto";
import { type AesGcmOptions, aesGcm } from "../../src/seal/aes-gcm.ts";
import type { PayloadCodec } from "../../src/seal/payload-codec.ts";

/** A key for tests: the hash of its name. */
export const testKey = (name: string): Uint8Array => createHash("sha256").update(name).digest();

export const testCodec = (options: Partial<AesGcmOptions> = {}): PayloadCodec =>
  aesGcm({ keys: { k1: testKey("k1") }, current: "k1", hashKey: testKey("hash"), ...options });

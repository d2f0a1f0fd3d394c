import { createHmac, createPublicKey, type KeyObject, timingSafeEqual, verify as verifySignature } from "node:crypto";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { Duration } from "../../base/duration.ts";
import { TapeError } from "../../model/errors.ts";
import { assertKnownKeys, durationOf } from "../../sdk/validate.ts";
import { passed, unauthenticated, type Verify } from "./verify.ts";

/** How Standard Webhooks are verified. */
export interface WebhookSignatureOptions {
  /** `whsec_…` (HMAC, 24 to 64 bytes) or `whpk_…` (an ed25519 public key); two while one replaces the other. */
  readonly secrets: readonly string[];
  /** How far the sender's clock may differ. Default 5 minutes. */
  readonly tolerance?: Duration;
  readonly clock?: Clock;
}

type Key = { readonly version: "v1"; readonly key: Buffer } | { readonly version: "v1a"; readonly key: KeyObject };

const maxSignatures = 20;

/**
 * Accepts requests that are signed as Standard Webhooks, with the time of the attempt in the signature.
 *
 * @example
 * const verify = webhookSignature({ secrets: [process.env.HOOK_SECRET!] });
 */
export function webhookSignature(options: WebhookSignatureOptions): Verify {
  assertKnownKeys("webhookSignature", options, ["secrets", "tolerance", "clock"]);
  const { secrets, tolerance, clock = systemClock } = options;
  if (!Array.isArray(secrets) || secrets.length === 0 || secrets.length > 10) {
    throw new TapeError("TAPE_BAD_INPUT", "webhookSignature: secrets must have 1 to 10 entries", { field: "secrets" });
  }
  const keys = secrets.map(keyOf);
  const toleranceMs = durationOf("webhookSignature", "tolerance", tolerance, 300_000);
  return {
    label: "webhookSignature",
    async check(headers, body) {
      const [id, timestamp, signatures] = ["id", "timestamp", "signature"].map((name) =>
        headers.get(`webhook-${name}`),
      );
      if (!id || !timestamp || !signatures) return unauthenticated("a webhook-* header is missing");
      if (!/^\d{1,12}$/.test(timestamp)) return unauthenticated("webhook-timestamp is not a number of seconds");
      if (Math.abs(clock.wall() - Number(timestamp) * 1_000) > toleranceMs) {
        return unauthenticated("webhook-timestamp differs too much from this machine's clock");
      }
      const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
      const offered = signatures.split(" ").slice(0, maxSignatures);
      const matches = offered.filter((signature) => keys.some((key) => isSignedBy(key, signature, signed)));
      return matches.length > 0 ? passed : unauthenticated("no signature fits");
    },
  };
}

function keyOf(secret: unknown): Key {
  const [, prefix, encoded = ""] = /^(whsec|whpk)_([A-Za-z0-9+/]+={0,2})$/.exec(String(secret)) ?? [];
  const bytes = Buffer.from(encoded, "base64");
  if (prefix === "whsec" && bytes.length >= 24 && bytes.length <= 64) return { version: "v1", key: bytes };
  if (prefix === "whpk" && bytes.length === 32) {
    const jwk = { kty: "OKP", crv: "Ed25519", x: bytes.toString("base64url") };
    return { version: "v1a", key: createPublicKey({ key: jwk, format: "jwk" }) };
  }
  const message = "webhookSignature: a secret must be whsec_ and 24 to 64 bytes, or whpk_ and 32 bytes, in base64";
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "secrets" });
}

function isSignedBy({ version, key }: Key, signature: string, signed: Buffer): boolean {
  const [offered, encoded = ""] = signature.split(",", 2);
  if (offered !== version) return false;
  const bytes = Buffer.from(encoded, "base64");
  if (version === "v1a") return bytes.length === 64 && verifySignature(null, signed, key, bytes);
  const expected = createHmac("sha256", key).update(signed).digest();
  return bytes.length === expected.length && timingSafeEqual(bytes, expected);
}

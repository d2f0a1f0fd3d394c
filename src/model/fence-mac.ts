import { createHmac, timingSafeEqual } from "node:crypto";
import { TapeError } from "./errors.ts";

/** The request header that proves the origin of the token. */
export const macHeader = "tape-fence-mac";

/** A shorter secret can be guessed. */
const minChars = 32;

export function assertMacSecret(secret: unknown): asserts secret is string {
  if (typeof secret === "string" && secret.length >= minChars) return;
  throw new TapeError("TAPE_BAD_INPUT", `the secret must be a string of at least ${minChars} random characters`, {
    field: "secret",
  });
}

/**
 * HMAC-SHA-256 over the scope, as in its header, and the token. A replayed MAC only proves a token that was issued for
 * this scope: a stale token is refused as usual, and a higher one cannot be forged.
 */
export function fenceMac(secret: string, header: string, scope: string, token: bigint): string {
  // Header values contain no line breaks, so the parts cannot run together.
  return createHmac("sha256", secret).update(`tape-fence/1\n${header}\n${scope}\n${token}`).digest("hex");
}

export function isSameMac(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

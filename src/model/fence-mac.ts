import { createHmac, timingSafeEqual } from "node:crypto";
import { TapeError } from "./errors.ts";

/** The header of a request that proves who wrote its token. */
export const macHeader = "tape-fence-mac";

/** Shorter than this a secret can be guessed. */
const minChars = 32;

export function assertMacSecret(secret: unknown): asserts secret is string {
  if (typeof secret === "string" && secret.length >= minChars) return;
  throw new TapeError("TAPE_BAD_INPUT", `a secret is a text of at least ${minChars} random characters`, {
    field: "secret",
  });
}

/**
 * HMAC-SHA-256 over the scope, as its header has it, and the token. Who repeats it brings a token that was issued for
 * this scope: a stale one is refused as ever, and a higher one cannot be made up.
 */
export function fenceMac(secret: string, header: string, scope: string, token: bigint): string {
  // Neither part holds a line break: headers have none.
  return createHmac("sha256", secret).update(`tape-fence/1\n${header}\n${scope}\n${token}`).digest("hex");
}

export function isSameMac(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

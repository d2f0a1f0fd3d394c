import { createHmac } from "node:crypto";
import { isSameMac } from "./fence-mac.ts";

/**
 * The token of a callback: `journal.pos.mac`. It opens one gate and nothing else. It follows from the store's secret, so
 * a replay computes the same token, and no journal contains it.
 */
export interface CallbackRef {
  readonly journal: number;
  readonly pos: number;
}

/** The secret of one run's callbacks. The store gives it to the run's holder only. */
export function callbackSecret(storeSecret: string, journal: number): string {
  return createHmac("sha256", storeSecret).update(`tape-callbacks/1\n${journal}`).digest("base64url");
}

/** `secret`: the run's, see {@link callbackSecret}. */
export function callbackToken(secret: string, { journal, pos }: CallbackRef): string {
  return `${journal}.${pos}.${createHmac("sha256", secret).update(`tape-callback/1\n${pos}`).digest("base64url")}`;
}

/** SHA-256 in base64url has 43 characters. Numbers have at most 15 digits: they are safe integers. */
const form = /^([1-9]\d{0,14})\.(0|[1-9]\d{0,14})\.[\w-]{43}$/;

/** The gate that a token opens; undefined: the store did not issue it. The comparison takes constant time. */
export function callbackOf(storeSecret: string, token: string): CallbackRef | undefined {
  const [, journal, pos] = form.exec(token) ?? [];
  if (journal === undefined || pos === undefined) return undefined;
  const ref = { journal: Number(journal), pos: Number(pos) };
  return isSameMac(token, callbackToken(callbackSecret(storeSecret, ref.journal), ref)) ? ref : undefined;
}

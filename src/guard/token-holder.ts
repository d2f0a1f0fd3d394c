import { TapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";

/**
 * Whoever brings a fencing token to a resource. A lease is one, and so are the context of a singleton's body and, by its
 * idempotency key, the context of an effect. Tokens are compared only within one scope: the lease's name, or the key.
 */
export type TokenHolder =
  | {
      readonly name: string;
      readonly token: bigint;
      readonly tenant?: string;
      /** Looked at first, where there is one: what the holder itself no longer trusts need not be asked. */
      assert?(): void;
    }
  | { readonly key: string; readonly token: bigint };

/** A bearer whose term the store itself can look up: a lease, a singleton's context, or the context of an effect. */
export type LeaseHolder = TokenHolder & { readonly fence: Fence };

export function scopeOf(bearer: TokenHolder): string {
  return "name" in bearer ? `${bearer.tenant ?? "default"}/${bearer.name}` : bearer.key;
}

/** What the bearer knows by itself: its deadline may have passed. */
export function assertHolder(bearer: TokenHolder): void {
  if ("assert" in bearer) bearer.assert?.();
}

export function refuseStale(scope: string, token: bigint, highest?: bigint): never {
  const seen = highest === undefined ? "the lease has moved on" : `token ${highest} was here already`;
  throw new TapeError("TAPE_FENCED", `${scope}: token ${token} is stale, ${seen}`, {
    scope,
    token: String(token),
    ...(highest === undefined ? {} : { highest: String(highest) }),
  });
}

/** A guard that is not inside the user's transaction guards nothing. */
export function refuseOutsideTransaction(how: string): never {
  throw new TapeError("TAPE_BAD_INPUT", `a guard belongs into the transaction of the write: ${how}`, {
    field: "client",
  });
}

import { TapeError } from "../model/errors.ts";
import type { Fence } from "../model/fence.ts";

/**
 * Anything that carries a fencing token to a resource: a lease, the context of a singleton's body or, by its idempotency
 * key, the context of an effect. Tokens are compared only within one scope: the lease's name, or the key.
 */
export type TokenHolder =
  | {
      readonly name: string;
      readonly token: bigint;
      readonly tenant?: string;
      /** Checked first if present: a lease that its holder no longer trusts needs no query. */
      assert?(): void;
    }
  | { readonly key: string; readonly token: bigint };

/** A token holder whose term the store can look up: a lease, a singleton's context, or the context of an effect. */
export type LeaseHolder = TokenHolder & { readonly fence: Fence };

export function scopeOf(holder: TokenHolder): string {
  return "name" in holder ? `${holder.tenant ?? "default"}/${holder.name}` : holder.key;
}

/** Throws if the holder's own deadline has passed. */
export function assertHolder(holder: TokenHolder): void {
  if ("assert" in holder) holder.assert?.();
}

export function refuseStale(scope: string, token: bigint, highest?: bigint): never {
  const seen = highest === undefined ? "the lease has a newer token" : `token ${highest} was seen already`;
  throw new TapeError("TAPE_FENCED", `${scope}: token ${token} is stale, ${seen}`, {
    scope,
    token: String(token),
    ...(highest === undefined ? {} : { highest: String(highest) }),
  });
}

/** A guard that is not inside the user's transaction guards nothing. */
export function refuseOutsideTransaction(how: string): never {
  throw new TapeError("TAPE_BAD_INPUT", `a guard must run inside the transaction of the write: ${how}`, {
    field: "client",
  });
}

import { TapeError } from "../model/errors.ts";
import { assertHolder, refuseStale, scopeOf, type TokenHolder } from "./token-holder.ts";

/**
 * The highest token that a resource has seen, for each scope. Any database can be guarded that implements:
 *
 *   raise   in the transaction of the write, lock the scope's row, set it to the higher of its value and `token`, and
 *           return the new value. The lock lasts until that transaction ends.
 */
export interface GuardTable {
  /** Raises the highest token of a scope to this one, unless it is higher, and returns the highest. */
  raise(scope: string, token: bigint): Promise<bigint>;
}

/**
 * Refuses a token that is lower than the highest seen. A resource outside the store cannot learn of a takeover: it
 * refuses the previous holder from the new holder's first write on, not from the takeover on.
 *
 * @example
 * await mysql.beginTransaction();
 * await guardTable({ raise: (scope, token) => raiseOn(mysql, scope, token) }, lease);
 * await mysql.query("update …");
 * await mysql.commit();
 */
export async function guardTable(table: GuardTable, holder: TokenHolder): Promise<void> {
  assertHolder(holder);
  const scope = scopeOf(holder);
  const highest = await table.raise(scope, holder.token);
  if (highest > holder.token) refuseStale(scope, holder.token, highest);
}

/**
 * A guard table in memory, for tests and for services of one process that may lose it. It keeps at least the most
 * recently used `scopes` (default 100,000), because each idempotency key of a connector is a scope. It accepts any
 * token for a scope that it has dropped.
 *
 * @example
 * await guardTable(memoryGuardTable(), lease);
 */
export function memoryGuardTable(options: { readonly scopes?: number } = {}): GuardTable {
  const { scopes = 100_000 } = options;
  if (!Number.isSafeInteger(scopes) || scopes < 1) {
    throw new TapeError("TAPE_BAD_INPUT", "scopes must be a whole number of at least 1", { field: "scopes" });
  }
  // Two generations: when the recent one is full, the older one is dropped whole, so no search for the oldest is needed.
  let [recent, older] = [new Map<string, bigint>(), new Map<string, bigint>()];
  return {
    async raise(scope, token) {
      const seen = recent.get(scope) ?? older.get(scope) ?? token;
      const highest = seen > token ? seen : token;
      recent.set(scope, highest);
      if (recent.size >= scopes) [recent, older] = [new Map(), recent];
      return highest;
    },
  };
}

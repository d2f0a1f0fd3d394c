import { TapeError } from "../model/errors.ts";
import { assertHolder, refuseStale, scopeOf, type TokenHolder } from "./token-holder.ts";

/**
 * The highest token that a resource has seen, for each scope. What any database must be able to do to be guarded:
 *
 *   raise   in the transaction of the write, lock the scope's row, set it to the higher of what it holds and `token`,
 *           and answer what it holds now. The lock lasts until that transaction ends.
 */
export interface GuardTable {
  raise(scope: string, token: bigint): Promise<bigint>;
}

/**
 * Refuses a token that is lower than the highest seen. A resource outside the store can know no better: it closes to the
 * old holder with the new one's first write, not with the takeover.
 *
 * @example
 * await mysql.beginTransaction();
 * await guardTable({ raise: (scope, token) => raiseOn(mysql, scope, token) }, lease);
 * await mysql.query("update …");
 * await mysql.commit();
 */
export async function guardTable(table: GuardTable, bearer: TokenHolder): Promise<void> {
  assertHolder(bearer);
  const scope = scopeOf(bearer);
  const highest = await table.raise(scope, bearer.token);
  if (highest > bearer.token) refuseStale(scope, bearer.token, highest);
}

/**
 * Kept in this process alone: for tests, and for services of one process that may forget. It keeps at least the
 * `scopes` (default 100,000) that were used last, because each idempotency key of a connector is one. For a scope that it
 * has forgotten it lets any token in.
 */
export function memoryGuardTable(options: { readonly scopes?: number } = {}): GuardTable {
  const { scopes = 100_000 } = options;
  if (!Number.isSafeInteger(scopes) || scopes < 1) {
    throw new TapeError("TAPE_BAD_INPUT", "scopes is a whole number of at least 1", { field: "scopes" });
  }
  // Two generations: when the younger one is full, the older one is dropped whole. Nothing has to find the oldest scope.
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

import { assertBearer, type Bearer, refuseStale, scopeOf } from "./bearer.ts";

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
export async function guardTable(table: GuardTable, bearer: Bearer): Promise<void> {
  assertBearer(bearer);
  const scope = scopeOf(bearer);
  const highest = await table.raise(scope, bearer.token);
  if (highest > bearer.token) refuseStale(scope, bearer.token, highest);
}

/** Kept in this process alone: for tests, and for services of one process that may forget. */
export function memoryGuards(): GuardTable {
  const seen = new Map<string, bigint>();
  return {
    async raise(scope, token) {
      const highest = seen.get(scope) ?? token;
      seen.set(scope, highest > token ? highest : token);
      return seen.get(scope)!;
    },
  };
}

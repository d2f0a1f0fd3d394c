import type { Query, QueryResult } from "../sql/plan.ts";
import type { Connections } from "./connections.ts";

/**
 * The run, what it waits for, what that waits for, and so on. GoogleSQL has no recursion: one statement finds the next
 * runs, and all of them read the same timestamp.
 */
export function blockersOf(connections: Connections, call: Query, tenant: string | undefined): Promise<QueryResult> {
  return connections.inSlot(tenant, async () => {
    const [snapshot] = await connections.database.getSnapshot();
    try {
      const reached = new Set([Number(call.params.journal)]);
      for (let next = [...reached]; next.length > 0 && reached.size <= Number(call.params.limit); ) {
        const params = { journals: JSON.stringify(next) };
        const { rows } = await connections.perform(snapshot, { sql: "slot.reach", params });
        next = rows.map((row) => Number(row.journal)).filter((journal) => !reached.has(journal));
        for (const journal of next) reached.add(journal);
      }
      const params = { ...call.params, journals: JSON.stringify([...reached]) };
      return await connections.perform(snapshot, { sql: "slot.blockers", params });
    } finally {
      snapshot.end();
    }
  });
}

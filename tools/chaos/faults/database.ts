import pg from "pg";
import { systemClock } from "../../../src/base/clock.ts";
import type { PostgresServer } from "../../../test/postgres/server.ts";
import type { Deployment, Fault } from "../fault.ts";
import type { Pair } from "../pair.ts";

export const restartKind = "database crash and restart";
export const syncKind = "failover to a synchronous standby";
export const asyncKind = "failover to an asynchronous standby";

/** An immediate stop is a crash: every connection is lost, and recovery replays the WAL. */
export function restartFault({ injections }: Deployment, server: () => PostgresServer): Fault {
  return {
    kind: restartKind,
    effectiveWhen: "connections of ours were open when the server went down",
    weight: 0.5,
    exclusive: true,
    async inject() {
      const connections = await openConnections(server().url);
      await server().restart("immediate");
      injections.push({
        kind: restartKind,
        effective: connections > 0,
        hit: connections > 0 ? ["open connections"] : [],
        outcome: ["recovered from its WAL"],
      });
    },
  };
}

/**
 * Kills the primary and promotes its standby, which the processes then find at the primary's address. `isHeld`: whether a
 * process holds a lease.
 */
export function failoverFault(
  { injections, random, repair }: Pick<Deployment, "injections" | "random" | "repair">,
  pair: Pair,
  retarget: () => void,
  isHeld: () => Promise<boolean>,
): Fault {
  const kind = pair.synchronous ? syncKind : asyncKind;
  return {
    kind,
    effectiveWhen: pair.synchronous
      ? "processes held leases when the primary died"
      : "processes held leases when the primary died, and the standby lacked data that it had written",
    weight: 1,
    initial: 2,
    exclusive: true,
    async inject() {
      const held = await isHeld();
      const lostBytes = await pair.failover(300 + random.int(700));
      retarget();
      injections.push({
        kind,
        effective: held && (pair.synchronous || lostBytes > 0),
        hit: [held ? "lease holders" : "no lease"],
        outcome: [
          lostBytes > 0 ? "the standby lacked data that the primary had written" : "the standby had everything",
        ],
      });
      // In the background the new primary gets a standby, before the next failover.
      repair(pair.rejoin());
      await systemClock.sleep(500);
    },
  };
}

async function openConnections(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url, application_name: "tape chaos" });
  client.on("error", () => {});
  await client.connect();
  try {
    const { rows } = await client.query<{ n: string }>(
      "select count(*) as n from pg_stat_activity where application_name = 'durable-tape'",
    );
    return Number(rows[0]?.n);
  } finally {
    await client.end();
  }
}

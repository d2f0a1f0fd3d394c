import pg from "pg";
import { systemClock } from "../../../src/base/clock.ts";
import type { PostgresServer } from "../../../test/postgres/server.ts";
import type { Pair } from "../pair.ts";
import type { Deployment, Fault } from "../strike.ts";

export const restartKind = "database crash and restart";
export const syncKind = "failover to a synchronous standby";
export const asyncKind = "failover to an asynchronous standby";

/** An immediate stop is a crash: every connection is gone, recovery replays the log. */
export function restartFault({ strikes }: Deployment, server: () => PostgresServer): Fault {
  return {
    kind: restartKind,
    counts: "connections of ours were open when the server went down",
    weight: 0.5,
    alone: true,
    async play() {
      const connections = await openConnections(server().url);
      await server().restart("immediate");
      strikes.push({
        kind: restartKind,
        bitten: connections > 0,
        hit: connections > 0 ? ["open connections"] : [],
        outcome: ["recovered from its log"],
      });
    },
  };
}

/** Kills the primary and promotes its standby, which the workers then find at the primary's address. */
export function failoverFault(deployment: Deployment, pair: Pair, retarget: () => void): Fault {
  const { strikes, random, replicas } = deployment;
  const kind = pair.synchronous ? syncKind : asyncKind;
  return {
    kind,
    counts: pair.synchronous
      ? "workers held leases when the primary died"
      : "workers held leases when the primary died, and it had written what the standby never got",
    weight: 1,
    first: 2,
    alone: true,
    async play() {
      const leases = await Promise.all(replicas.map(({ label }) => deployment.leasesOf(label)));
      const held = leases.some((one) => Object.keys(one).length > 0);
      const lostBytes = await pair.failover(300 + random.int(700));
      retarget();
      strikes.push({
        kind,
        bitten: held && (pair.synchronous || lostBytes > 0),
        hit: [held ? "holders of leases" : "nobody's lease"],
        outcome: [lostBytes > 0 ? "the standby lacked what the primary had written" : "the standby had everything"],
      });
      // The survivor gets a standby of its own before the next one, while the others go on.
      deployment.mend(pair.rejoin());
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

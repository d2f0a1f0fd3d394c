import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { systemClock } from "../../../src/base/clock.ts";
import type { PostgresProxy } from "../../../test/postgres/proxy.ts";
import { anyOf, type Deployment, type Fault, targets } from "../fault.ts";
import type { Replica } from "../replicas.ts";

export const stopKind = "stop inside a transaction";

/** How long to wait for a transaction to start. */
const patienceMs = 2_000;
/** After this many checks in a row the file counts as locked: no transaction of a running process takes that long. */
const lockedChecks = 10;
const checkMs = 15;

/** A process stops itself between two statements, while it holds SQLite's write lock. */
export function sqliteStop(deployment: Deployment, file: string): Fault {
  const { random, ttlMs, injections } = deployment;
  return {
    kind: stopKind,
    effectiveWhen: "the file stayed locked while the process was stopped",
    weight: 1,
    exclusive: true,
    async inject() {
      const replica = anyOf(targets(deployment), random);
      if (replica === undefined) return;
      replica.send("stop in a transaction");
      replica.expectStop();
      const locked = await staysLocked(file);
      const stoppedMs = Math.round(ttlMs * (locked ? 1.4 : 0));
      await systemClock.sleep(stoppedMs);
      replica.send("continue");
      replica.wake();
      injections.push({
        kind: stopKind,
        effective: locked,
        hit: [locked ? "holding the write lock of the file" : "between transactions"],
        outcome: [locked ? "no process could write; woken after its leases expired, it committed" : "woken"],
      });
      // A process that received the command late may still stop.
      if (!locked) await systemClock.sleep(checkMs * lockedChecks).then(() => replica.wake());
    },
  };
}

async function staysLocked(file: string): Promise<boolean> {
  const until = systemClock.mono() + patienceMs;
  const probe = new DatabaseSync(file, { timeout: 0 });
  try {
    for (let locked = 0; systemClock.mono() < until; ) {
      locked = isLocked(probe) ? locked + 1 : 0;
      if (locked === lockedChecks) return true;
      await systemClock.sleep(checkMs);
    }
    return false;
  } finally {
    probe.close();
  }
}

function isLocked(probe: DatabaseSync): boolean {
  try {
    probe.exec("begin immediate; rollback");
    return false;
  } catch {
    return true;
  }
}

/** A process is stopped after the server has started its transaction, and before it can continue it. */
export function postgresStop(
  deployment: Deployment,
  admin: () => string,
  proxyOf: (replica: Replica) => PostgresProxy,
): Fault {
  const { random, ttlMs, injections } = deployment;
  return {
    kind: stopKind,
    effectiveWhen: "the server had an open transaction of the stopped process",
    weight: 1,
    async inject() {
      const replica = anyOf(targets(deployment), random);
      if (replica === undefined) return;
      const stopped = new AbortController();
      let port = 0;
      const disarm = proxyOf(replica).onTransaction((at) => {
        if (!replica.up) return;
        port = at;
        replica.pause();
        stopped.abort();
      });
      await systemClock.sleep(patienceMs, stopped.signal);
      disarm();
      if (!stopped.signal.aborted) return;
      const repair = async (): Promise<void> => {
        const { open, locks } = await transactionOf(admin(), port);
        await systemClock.sleep(ttlMs * 1.4);
        const after = await transactionOf(admin(), port);
        if (replica.paused) replica.wake();
        injections.push({
          kind: stopKind,
          effective: open,
          hit: [open ? (locks > 0 ? "holding locks" : "in a transaction without locks") : "after its commit"],
          outcome: [after.open ? "still open when it was woken" : "the server had ended it before it was woken"],
        });
      };
      deployment.repair(repair());
    },
  };
}

async function transactionOf(url: string, port: number): Promise<{ open: boolean; locks: number }> {
  const client = new pg.Client({ connectionString: url, application_name: "tape chaos" });
  client.on("error", () => {});
  await client.connect();
  try {
    const { rows } = await client.query<{ state: string; locks: string }>(
      `select state, (select count(*) from pg_locks l where l.pid = a.pid and l.granted and l.locktype = 'relation'
         and l.mode in ('RowShareLock', 'RowExclusiveLock')) as locks
       from pg_stat_activity a where client_port = $1`,
      [port],
    );
    return { open: rows[0]?.state.startsWith("idle in transaction") ?? false, locks: Number(rows[0]?.locks ?? 0) };
  } finally {
    await client.end();
  }
}

import type { Clock } from "../../../base/clock.ts";
import { TapeError } from "../../../model/errors.ts";
import type { ShardSession } from "./access.ts";

/** The states of a tenant in one shard, each change in its own transaction. `mover`: the process that moves it. */

/** How long a mover waits for open transactions of the shard. */
const barrierMs = 60_000;
const pollMs = 10;
/** A writer never waits longer than this for the lock that raises the feed's offset. */
const lockMs = 200;
const lockTries = 100;

/** Announces that the tenant leaves. Processes that ask from now on trust nothing about it. */
export function announceLeaving(session: ShardSession, tenant: string, mover: string): Promise<void> {
  return session.transaction(async () => {
    await session.rows(
      `insert into tape.residents(tenant, state, mover) values ($1, 'LEAVING', $2)
       on conflict(tenant) do update set state = case residents.state when 'MOVING' then 'MOVING' else 'LEAVING' end, mover = excluded.mover`,
      [tenant, mover],
    );
    await countMove(session);
  });
}

/**
 * First the shard refuses every write of the tenant that needs no fence, and every new term; then all its terms end. In
 * this order: a term that was granted while the terms ended would survive them. Each time it waits for transactions that
 * began before: they may have passed the check.
 */
export async function pauseTenant(session: ShardSession, tenant: string, mover: string, clock: Clock): Promise<void> {
  await settled(session, clock, async () => {
    await holdState(session, tenant, mover, ["LEAVING", "MOVING"]);
    await session.rows("update tape.residents set state = 'MOVING' where tenant = $1", [tenant]);
    await countMove(session);
  });
  await settled(session, clock, async () => {
    await holdState(session, tenant, mover, ["MOVING"]);
    await session.rows("update tape.leases set doomed = true where tenant = $1 and owner is not null", [tenant]);
  });
}

/** Commits the work, and resolves when every transaction that began before the commit has ended. */
async function settled(session: ShardSession, clock: Clock, work: () => Promise<void>): Promise<void> {
  const [change] = await session.transaction(async () => {
    await work();
    return session.rows<{ id: string }>("select pg_current_xact_id()::text as id");
  });
  // Transactions without a number yet get a later one: those of the check have theirs before they check.
  const [next] = await session.rows<{ id: string }>("select pg_snapshot_xmax(pg_current_snapshot())::text as id");
  const until = clock.mono() + barrierMs;
  for (;;) {
    const [row] = await session.rows<{ passed: boolean }>(
      "select pg_snapshot_xmin(pg_current_snapshot()) >= greatest($1::text::xid8, $2::text::xid8) as passed",
      [change!.id, next!.id],
    );
    if (row!.passed) return;
    if (clock.mono() > until) {
      const message = "a transaction on the tenant's shard has been open for a minute: end it, then repeat the move";
      throw new TapeError("TAPE_SHARD_REFUSED", message);
    }
    await clock.sleep(pollMs);
  }
}

/** Prepares the new shard for the copy. */
export function expectTenant(session: ShardSession, tenant: string, mover: string): Promise<void> {
  return session.transaction(async () => {
    const [found] = await session.rows<{ state: string }>(
      `insert into tape.residents(tenant, state, mover) values ($1, 'ARRIVING', $2)
       on conflict(tenant) do update set mover = excluded.mover,
         state = case when residents.state in ('GONE', 'ARRIVING') then 'ARRIVING' else residents.state end
       returning state`,
      [tenant, mover],
    );
    if (found!.state === "ARRIVING") return;
    throw new TapeError("TAPE_SHARD_REFUSED", `the new shard has the tenant already: it is ${found!.state} there`);
  });
}

/**
 * The copied records keep their places in the feed, so that the tenant's cursors stay valid. New records must come after
 * them. The offset is raised while no transaction has written a record: under an open one the feed would pass it.
 */
export async function raiseFeed(session: ShardSession, tenant: string, clock: Clock): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await session.transaction(async () => {
        await session.rows(`set local lock_timeout = ${lockMs}`);
        await session.rows("lock table tape.records in exclusive mode");
        await session.rows(
          `update tape.meta set feed_offset = feed_offset + greatest(1,
             (select coalesce(max(r.stamp), 0) + 1 from tape.leases l
              cross join lateral (select max(x.stamp) as stamp from tape.records x where x.journal in (l.journal, -l.journal)) r
              where l.tenant = $1) - pg_snapshot_xmin(pg_current_snapshot())::text::bigint - feed_offset)`,
          [tenant],
        );
      });
      return;
    } catch (error) {
      if ((error as { code?: string }).code !== "55P03" || tries === lockTries) throw error;
    }
    await clock.sleep(pollMs);
  }
}

/** The directory names this shard: it serves the tenant from now on. */
export const settleTenant = (session: ShardSession, tenant: string, mover: string): Promise<void> =>
  changeState(session, tenant, mover, { from: ["ARRIVING", "HERE"], to: "HERE" });

/** The directory names another shard. */
export const dismissTenant = (session: ShardSession, tenant: string, mover: string): Promise<void> =>
  changeState(session, tenant, mover, { from: ["LEAVING", "MOVING", "GONE"], to: "GONE" });

/** The move is given up: the tenant stays. */
export const keepTenant = (session: ShardSession, tenant: string, mover: string): Promise<void> =>
  changeState(session, tenant, mover, { from: ["LEAVING", "MOVING", "HERE"], to: "HERE" });

interface Change {
  readonly from: readonly string[];
  readonly to: string;
}

function changeState(session: ShardSession, tenant: string, mover: string, { from, to }: Change): Promise<void> {
  return session.transaction(async () => {
    await holdState(session, tenant, mover, from);
    await session.rows("update tape.residents set state = $2 where tenant = $1", [tenant, to]);
    await countMove(session);
  });
}

/** Locks the tenant's state until the commit. Throws if it is another one, or if another process moves the tenant. */
export async function holdState(
  session: ShardSession,
  tenant: string,
  mover: string,
  states: readonly string[],
): Promise<void> {
  const [found] = await session.rows<{ state: string }>(
    "select r.state from tape.residents r where r.tenant = $1 and r.mover = $2 for update",
    [tenant, mover],
  );
  if (found !== undefined && states.includes(found.state)) return;
  throw new TapeError("TAPE_SHARD_REFUSED", "another process has taken this move over");
}

/** Takes the tenant's state over from a mover that was killed. */
export async function adoptState(session: ShardSession, tenant: string, mover: string): Promise<void> {
  await session.rows("update tape.residents set mover = $2 where tenant = $1", [tenant, mover]);
}

const countMove = (session: ShardSession): Promise<object[]> =>
  session.rows("update tape.shard_identity set moves = moves + 1");

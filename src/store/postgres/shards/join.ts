import { TapeError } from "../../../model/errors.ts";
import { firstJournalOf } from "../../../model/journal-numbers.ts";
import type { ShardAccess, ShardSession } from "./access.ts";
import type { RosterRow } from "./peek.ts";

/** Keys that all shards share: cursors, callbacks and stream tokens stay valid when a tenant moves. */
interface SharedKeys {
  readonly set_id: string;
  readonly secret: string;
  readonly cursor_key: string;
  /** The limits of tenants without their own, as JSON. */
  readonly quota: string | null;
}

const read = `
  select i.set_id, m.secret, m.cursor_key,
    (select to_jsonb(q)::text from tape.quotas q where q.tenant = '') as quota
  from tape.meta m join tape.shard_identity i on true`;

/**
 * Makes the first database of a list the directory of a new set. Its tenants stay where they are. Another process may do
 * the same: the first one decides, and both get its set.
 */
export function foundSet(access: ShardAccess, set: string, names: readonly string[]): Promise<SharedKeys> {
  return access.session(async (session) => {
    await session.transaction(async () => {
      await lock(session);
      const [found] = await session.rows(read);
      if (found !== undefined) return;
      await guard(session);
      await session.rows("insert into tape.shard_identity(set_id, number, name) values ($1, 0, $2)", [set, names[0]]);
      for (const [number, name] of names.entries())
        await enrol(session, { number, name, state: number === 0 ? "OPEN" : "JOINING" });
      await session.rows(residents);
      await session.rows(
        "insert into tape.shard_tenants(tenant, shard, at) select tenant, 0, tape.now_ms() from tape.residents on conflict do nothing",
      );
    });
    return (await session.rows<SharedKeys>(read))[0]!;
  });
}

/** Makes an empty database a shard of a set. Repeating it changes nothing. */
export function joinSet(
  access: ShardAccess,
  keys: SharedKeys,
  place: { readonly number: number; readonly name: string },
): Promise<void> {
  const { number, name } = place;
  return access.session((session) =>
    session.transaction(async () => {
      await lock(session);
      const [found] = await session.rows("select 1 from tape.shard_identity");
      if (found !== undefined) return;
      const [used] = await session.rows(
        "select 1 from tape.leases where journal <> 1 union all select 1 from tape.vals union all select 1 from tape.tokens limit 1",
      );
      if (used !== undefined) {
        const message = `the database of shard ${name} has runs, values or tokens already: only an empty one can join`;
        throw new TapeError("TAPE_SHARD_REFUSED", message, { shard: name });
      }
      await guard(session);
      await session.rows(
        "update tape.meta set next_journal = greatest(next_journal, $1), secret = $2, cursor_key = $3",
        [firstJournalOf(number) + 2, keys.secret, keys.cursor_key],
      );
      await session.rows(
        `insert into tape.quotas(tenant, runs, bytes, schedules, streams)
         select '', q.runs, q.bytes, q.schedules, q.streams from jsonb_populate_record(null::tape.quotas, $1::jsonb) q
         where $1 is not null on conflict do nothing`,
        [keys.quota],
      );
      await session.rows("insert into tape.shard_identity(set_id, number, name) values ($1, $2, $3)", [
        keys.set_id,
        number,
        name,
      ]);
    }),
  );
}

/** Writes one row of the list of shards, which every shard has. */
export async function enrol(session: ShardSession, { number, name, state }: RosterRow): Promise<void> {
  await session.rows(
    `insert into tape.shards(number, name, state, added_at) values ($1, $2, $3, tape.now_ms())
     on conflict(number) do update set state = excluded.state where shards.name = excluded.name`,
    [number, name, state],
  );
}

export const keysOf = (access: ShardAccess): Promise<SharedKeys> =>
  access.session(async (session) => (await session.rows<SharedKeys>(read))[0]!);

/** Two processes that change shards wait for each other. */
async function lock(session: ShardSession): Promise<void> {
  await session.rows("select 1 from tape.meta for update");
}

/** The triggers belong to the owner of the tables, who has migrated them. */
async function guard(session: ShardSession): Promise<void> {
  await session.rows("select tape.guard_residents()");
}

/** Every tenant that the store has rows of. Once, when it becomes the first shard of a set. */
const residents = `
  insert into tape.residents(tenant, state) select t.tenant, 'HERE' from (
    select tenant from tape.runs union select tenant from tape.names union select tenant from tape.vals
    union select tenant from tape.schedules union select tenant from tape.tokens union select tenant from tape.queues
    union select tenant from tape.builds union select tenant from tape.audit_heads union select tenant from tape.quotas
    union select tenant from tape.tombstones union select tenant from tape.idempotency_keys) t
  where t.tenant <> '' on conflict do nothing`;

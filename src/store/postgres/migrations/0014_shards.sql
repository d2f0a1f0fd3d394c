-- The shard that this store is. No row: it is a store of its own. `moves` grows whenever a tenant comes or leaves.
create table tape.shard_identity(
  one boolean not null default true check (one), set_id text not null, number bigint not null, name text not null,
  moves bigint not null default 0, primary key(one)
);

-- The shards of the set: JOINING, OPEN for new tenants, or CLOSED to them. The first shard's rows count, the others are copies.
create table tape.shards(
  number bigint not null, name text not null, state text not null, added_at bigint not null, primary key(number)
);
create unique index shards_name on tape.shards(name);

-- In the first shard, the directory: which shard has a tenant.
create table tape.shard_tenants(
  tenant text collate "C" not null, shard bigint not null, version bigint not null default 1, at bigint not null,
  primary key(tenant)
);

-- In the first shard: moves that have not ended. `phase`: COPYING until the directory names the new shard, then CLEARING.
-- `mover` is the process that carries it out: one that was replaced changes nothing more.
create table tape.shard_moves(
  tenant text collate "C" not null, source bigint not null, target bigint not null, phase text not null, mover text not null,
  by text not null, reason text not null, at bigint not null, primary key(tenant)
);

-- In each shard, its tenants: HERE, LEAVING (announced), MOVING (no write is accepted), ARRIVING, GONE.
create table tape.residents(
  tenant text collate "C" not null, state text not null, mover text, primary key(tenant)
);
create index residents_leaving on tape.residents(state) where state <> 'HERE' and state <> 'GONE';

-- Refuses writes of a tenant that is not here. After the row is written, so that the writer has a transaction number: a
-- mover waits for all of those. A snapshot that is older than the move fails at the row lock.
create function tape.assert_resident() returns trigger language plpgsql as $$
declare
  whose text := coalesce(new.tenant, old.tenant);
  place text;
begin
  if current_setting('transaction_isolation') = 'read committed' then
    select r.state into place from tape.residents r where r.tenant = whose;
  else
    select r.state into place from tape.residents r where r.tenant = whose for share;
  end if;
  if place in ('MOVING', 'ARRIVING', 'GONE') and current_setting('durable_tape.mover', true) is distinct from 'on' then
    raise exception 'the tenant moves to another shard: here it is %', place using errcode = 'TP001';
  end if;
  return null;
end $$;

-- Creates the triggers of a shard. Stores that are no shards have none.
create function tape.guard_residents() returns void language plpgsql as $$
declare
  guarded record;
begin
  for guarded in select * from (values
    ('leases', 'insert or delete or update of token, notes'), ('vals', 'insert or update or delete'),
    ('schedules', 'insert or update or delete'), ('audit', 'insert'), ('idempotency_keys', 'insert'),
    ('builds', 'insert or update or delete'), ('queues', 'insert or update of spec, override, pause'),
    ('quotas', 'insert or update of runs, bytes, schedules, streams'), ('tokens', 'insert or update of revoked_at')
  ) g(name, events)
  loop
    if not exists (select 1 from pg_catalog.pg_trigger t where t.tgrelid = ('tape.' || guarded.name)::regclass and t.tgname = 'residents') then
      execute 'create trigger residents after ' || guarded.events || ' on tape.' || guarded.name
        || ' for each row execute function tape.assert_resident()';
    end if;
  end loop;
end $$;

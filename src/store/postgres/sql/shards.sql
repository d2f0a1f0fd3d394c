-- name: shard.assign
-- unfenced: the directory's own row; the first process that asks for a new tenant decides
-- writes: shard_tenants
insert into tape.shard_tenants(tenant, shard, at) values (:tenant, :shard, tape.now_ms()) on conflict do nothing;

-- name: shard.identity
-- read
select i.set_id, i.number, i.name, i.moves from tape.shard_identity i;

-- name: shard.locate
-- read
select t.shard, t.version from tape.shard_tenants t where t.tenant = :tenant;

-- name: shard.moving
-- read
-- Whether tenants have come or left, and which ones are about to.
select i.moves, r.tenant, r.state from tape.shard_identity i
left join tape.residents r on r.state in ('LEAVING', 'MOVING', 'ARRIVING') limit 1001;

-- name: shard.moves
-- read
select m.tenant, m.source, m.target, m.phase, m.by, m.reason, m.at from tape.shard_moves m order by m.tenant limit :limit;

-- name: shard.residence
-- read
select r.state from tape.residents r where r.tenant = :tenant;

-- name: shard.roster
-- read
select s.number, s.name, s.state, s.added_at from tape.shards s order by s.number limit 1000;

-- name: shard.settle
-- unfenced: notes that the directory has named this shard; a tenant that has another state keeps it
-- writes: residents
insert into tape.residents(tenant, state) values (:tenant, 'HERE') on conflict do nothing;

-- name: shard.tenants
-- read
-- The tenants of this shard, by name.
select r.tenant from tape.residents r where r.tenant > :above and r.state <> 'GONE' order by r.tenant limit :limit;

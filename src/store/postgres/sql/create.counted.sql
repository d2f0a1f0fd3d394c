-- unfenced: as create, of tenants with a quota on runs: as many as there is room for, under the lock of the tenants' rows
-- In the order of the tenants, as everybody who locks several. What finds no room, or whose tenant has not been counted
-- lately (see recountMs in sql/plans/quotas.ts) or has a quota on bytes, is left out and tried alone. EPQ shows the row as it is once it is locked.
with i as materialized (
  select i.* from unnest(:journals::bigint[], :tenants::text[], :ids::text[], :workflows::text[], :versions::text[],
      :input_hashes::text[], :labelses::text[], string_to_array(:bodies, chr(31)),
      :nonces::bigint[], :owners::text[], :owner_labels::text[], :reactors::text[], :ttls::bigint[], :stalls::bigint[])
    as i(journal, tenant, id, workflow, version, input_hash, labels, body, nonce, owner, label, reactor, ttl, stall)),
m as materialized (select token_floor, pg_current_xact_id()::text::bigint + feed_offset as stamp, tape.now_ms() as at from tape.meta),
q as materialized (
  select q.tenant, coalesce(q.runs, d.runs) - q.runs_used as room from tape.quotas q left join tape.quotas d on d.tenant = ''
  where q.tenant = any (:tenants::text[]) and abs(tape.now_ms() - q.runs_at) < greatest(1000, q.runs_used / 10) and coalesce(q.runs, d.runs) >= 0
    and coalesce(q.bytes, d.bytes, -1) = -1
  order by q.tenant for update of q),
a as materialized (
  select i.*, row_number() over (partition by i.tenant order by i.journal) as nth,
    (select q.room from q where q.tenant = i.tenant) as room from i),
c as (insert into tape.runs(journal, tenant, id, workflow, version, phase, input_hash, labels, root, created_at, counted)
  select i.journal, i.tenant, i.id, i.workflow, i.version, 'LIVE', i.input_hash, i.labels, i.journal, m.at, true from a i cross join m
  where (select 1 from tape.tombstones t where t.tenant = i.tenant and t.id = i.id limit 1) is null
    and i.nth <= i.room
  order by i.tenant, i.id on conflict do nothing returning journal),
u as (update tape.quotas t set runs_used = t.runs_used + n.n
  from (select i.tenant, count(*) as n from i where (i.journal in (select journal from c)) is true group by i.tenant) n
  where t.tenant = n.tenant collate "C"),
l as (insert into tape.leases(journal, kind, tenant, run, workflow, token, nonce, owner, label, reactor, ttl_ms, expires_at, acquired_at,
    renewed_at, progress_at, max_stall_ms, reason, wants, due_at)
  select i.journal, 'run', i.tenant, i.journal, i.workflow, case when i.owner is null then 0 else m.token_floor + 1 end, i.nonce, i.owner,
    i.label, i.reactor, i.ttl, m.at + i.ttl, m.at, m.at, m.at, i.stall, case when i.owner is not null then 'start' end,
    case when i.owner is null then 'recovery' end, m.at
  from i cross join m where (i.journal in (select journal from c)) is true returning journal, token),
r as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select i.journal, 1, 0, m.stamp, m.at, 'run.created', i.body from i cross join m where (i.journal in (select journal from c)) is true),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, cast(token as text) as token from l

-- unfenced: creating is unique by the run's id; the creator's first term begins in the same transaction
-- Of a tenant with a quota none is created here: each is admitted alone.
-- IS TRUE keeps `in` from becoming a join, which compared every item with every other: it is a look-up in a hash now.
with i as materialized (
  select i.* from unnest(:journals::bigint[], :tenants::text[], :ids::text[], :workflows::text[], :versions::text[],
      :input_hashes::text[], :labelses::text[], string_to_array(:bodies, chr(31)),
      :nonces::bigint[], :owners::text[], :owner_labels::text[], :reactors::text[], :ttls::bigint[], :stalls::bigint[])
    as i(journal, tenant, id, workflow, version, input_hash, labels, body, nonce, owner, label, reactor, ttl, stall)),
m as materialized (select exists (select 1 from tape.quotas q where q.runs is not null or q.bytes is not null) as limited, token_floor, pg_current_xact_id()::text::bigint + feed_offset as stamp, tape.now_ms() as at from tape.meta),
c as (insert into tape.runs(journal, tenant, id, workflow, version, phase, input_hash, labels, root, created_at)
  select i.journal, i.tenant, i.id, i.workflow, i.version, 'LIVE', i.input_hash, i.labels, i.journal, m.at from i cross join m
  where (select 1 from tape.tombstones t where t.tenant = i.tenant and t.id = i.id limit 1) is null
    and (not m.limited or (select 1 from tape.quotas q where q.tenant = any (array[i.tenant, ''])
      and (q.runs is not null or q.bytes is not null) limit 1) is null)
  order by i.tenant, i.id on conflict do nothing returning journal),
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

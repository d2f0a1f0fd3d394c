-- macro: $has_labels
-- Whether the run `r` has these labels: pairs of a key and its possible values.
(:labels::text is null or not exists (select 1 from json_array_elements(:labels::json) c
    where not coalesce(r.labels::json ->> (c.value ->> 0) = any(array(select json_array_elements_text(c.value -> 1))), false)));

-- name: create_many.counted
-- unfenced: as create_many, for tenants with a quota on runs: as many as there is room for, under their rows' locks
-- writes: leases, quotas, records, run_labels, runs, witness
-- In the order of the tenants, like every statement that locks several. A run is left out and retried alone if it finds
-- no room, or if its tenant was not counted recently (see recountMs in sql/plans/quotas.ts) or has a quota on bytes.
-- EPQ shows the row as it is once it is locked.
with i as materialized (
  select i.* from unnest(:journals::bigint[], :tenants::text[], :ids::text[], :workflows::text[], :versions::text[],
      :input_hashes::text[], :label_sets::text[], string_to_array(:bodies, chr(31)),
      :nonces::bigint[], :owners::text[], :owner_labels::text[], :reactors::text[], :ttls::bigint[], :stalls::bigint[])
    as i(journal, tenant, id, workflow, version, input_hash, labels, body, nonce, owner, label, reactor, ttl, stall)),
m as materialized (select token_floor, tape.stamp() as stamp, tape.now_ms() as at from tape.meta),
q as materialized (
  select q.tenant, coalesce(q.runs, d.runs) - q.runs_used as room from tape.quotas q left join tape.quotas d on d.tenant = ''
  where q.tenant = any (:tenants::text[]) and abs(tape.now_ms() - q.runs_at) < greatest(1000, q.runs_used / 10) and coalesce(q.runs, d.runs) >= 0
    and coalesce(q.bytes, d.bytes, -1) = -1
  order by q.tenant for update of q),
a as materialized (
  select i.*, row_number() over (partition by i.tenant order by i.journal) as nth,
    (select q.room from q where q.tenant = i.tenant) as room from i),
c as (insert into tape.runs(journal, tenant, id, workflow, version, phase, input_hash, labels, labelled, root, created_at, counted)
  select i.journal, i.tenant, i.id, i.workflow, i.version, 'LIVE', i.input_hash, i.labels, case when i.labels is not null then true end, i.journal, m.at, true from a i cross join m
  where (select 1 from tape.tombstones t where t.tenant = i.tenant and t.id = i.id limit 1) is null
    and i.nth <= i.room
  order by i.tenant, i.id on conflict do nothing returning journal),
u as (update tape.quotas t set runs_used = t.runs_used + n.n
  from (select i.tenant, count(*) as n from i where (i.journal in (select journal from c)) is true group by i.tenant) n
  where t.tenant = n.tenant collate "C"),
l as (insert into tape.leases(journal, kind, tenant, run, workflow, token, nonce, owner, label, reactor, ttl_ms, expires_at, acquired_at,
    renewed_at, progress_at, max_stall_ms, reason, next_reactor, due_at)
  select i.journal, 'run', i.tenant, i.journal, i.workflow, case when i.owner is null then 0 else m.token_floor + 1 end, i.nonce, i.owner,
    i.label, i.reactor, i.ttl, m.at + i.ttl, m.at, m.at, m.at, i.stall, case when i.owner is not null then 'start' end,
    case when i.owner is null then 'recovery' end, m.at
  from i cross join m where (i.journal in (select journal from c)) is true returning journal, token),
r as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select i.journal, 1, 0, m.stamp, m.at, 'run.created', i.body from i cross join m where (i.journal in (select journal from c)) is true),
b as (insert into tape.run_labels(tenant, key, value, journal)
  select i.tenant, j.key, j.value, i.journal from i cross join lateral json_each_text(i.labels::json) j
  where i.labels is not null and (i.journal in (select journal from c)) is true),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, cast(token as text) as token from l;

-- name: create_many.labelled
-- unfenced: as create_many, for runs with labels
-- writes: leases, records, run_labels, runs, witness
with i as materialized (
  select i.* from unnest(:journals::bigint[], :tenants::text[], :ids::text[], :workflows::text[], :versions::text[],
      :input_hashes::text[], :label_sets::text[], string_to_array(:bodies, chr(31)),
      :nonces::bigint[], :owners::text[], :owner_labels::text[], :reactors::text[], :ttls::bigint[], :stalls::bigint[])
    as i(journal, tenant, id, workflow, version, input_hash, labels, body, nonce, owner, label, reactor, ttl, stall)),
m as materialized (select exists (select 1 from tape.quotas q where q.runs is not null or q.bytes is not null) as limited, token_floor, tape.stamp() as stamp, tape.now_ms() as at from tape.meta),
c as (insert into tape.runs(journal, tenant, id, workflow, version, phase, input_hash, labels, labelled, root, created_at)
  select i.journal, i.tenant, i.id, i.workflow, i.version, 'LIVE', i.input_hash, i.labels, true, i.journal, m.at from i cross join m
  where (select 1 from tape.tombstones t where t.tenant = i.tenant and t.id = i.id limit 1) is null
    and (not m.limited or (select 1 from tape.quotas q where q.tenant = any (array[i.tenant, ''])
      and (q.runs is not null or q.bytes is not null) limit 1) is null)
  order by i.tenant, i.id on conflict do nothing returning journal),
l as (insert into tape.leases(journal, kind, tenant, run, workflow, token, nonce, owner, label, reactor, ttl_ms, expires_at, acquired_at,
    renewed_at, progress_at, max_stall_ms, reason, next_reactor, due_at)
  select i.journal, 'run', i.tenant, i.journal, i.workflow, case when i.owner is null then 0 else m.token_floor + 1 end, i.nonce, i.owner,
    i.label, i.reactor, i.ttl, m.at + i.ttl, m.at, m.at, m.at, i.stall, case when i.owner is not null then 'start' end,
    case when i.owner is null then 'recovery' end, m.at
  from i cross join m where (i.journal in (select journal from c)) is true returning journal, token),
r as (insert into tape.records(journal, seq, token, stamp, at, kind, body)
  select i.journal, 1, 0, m.stamp, m.at, 'run.created', i.body from i cross join m where (i.journal in (select journal from c)) is true),
b as (insert into tape.run_labels(tenant, key, value, journal)
  select i.tenant, j.key, j.value, i.journal from i cross join lateral json_each_text(i.labels::json) j
  where (i.journal in (select journal from c)) is true),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select journal, cast(token as text) as token from l;

-- name: label.counts
-- read
-- How many runs have each of these values of labels, counted up to :limit.
select c.value ->> 0 as key, c.value ->> 1 as value, (select count(*) from (select 1 from tape.run_labels x
    where x.tenant = :tenant and x.key = c.value ->> 0 and x.value = c.value ->> 1 limit :limit) n) as runs
from json_array_elements(:pairs::json) c;

-- name: labels.adopt
-- unfenced: derived from columns that the same transaction has read and locked
-- writes: run_labels
-- The labels of runs that a process of the previous version has created.
insert into tape.run_labels(tenant, key, value, journal)
select r.tenant, j.key, j.value, r.journal from json_array_elements_text(:journals::json) i
cross join lateral (select r.tenant, r.journal, r.labels from tape.runs r where r.journal = i.value::bigint offset 0) r
cross join lateral json_each_text(r.labels::json) j
where length(j.key) <= 128 and length(j.value) <= 128
on conflict do nothing;

-- name: labels.create
-- unfenced: part of the transaction that creates the run
-- writes: run_labels
insert into tape.run_labels(tenant, key, value, journal)
select r.tenant, j.key, j.value, r.journal from tape.runs r cross join lateral json_each_text(r.labels::json) j
where r.journal = :journal;

-- name: labels.drop
-- fenced
-- writes: run_labels
delete from tape.run_labels where journal = :run and key = any(array(select json_array_elements_text(:keys::json)));

-- name: labels.find
-- read
-- Locked, because a process may adopt the labels of this run at the same time.
select r.labels, r.labelled is not null as listed from tape.runs r where r.journal = :run and r.tenant = :tenant
for no key update;

-- name: labels.listed
-- unfenced: as labels.adopt
-- writes: runs
update tape.runs set labelled = true
where journal = any(array(select json_array_elements_text(:journals::json)::bigint)) and labelled is null;

-- name: labels.put
-- fenced
-- writes: run_labels
insert into tape.run_labels(tenant, key, value, journal)
select :tenant, j.key, j.value, :run from json_each_text(:labels::json) j
on conflict do nothing;

-- name: labels.set
-- fenced
-- writes: runs
update tape.runs set labels = :labels, labelled = true where journal = :run;

-- name: labels.unlisted
-- read
-- Runs of any tenant whose labels only their own rows have: a process of the previous version has created them.
select r.journal from tape.runs r where r.labels is not null and r.labelled is null
order by r.tenant, r.journal limit :limit for no key update skip locked;

-- name: run.by_label
-- read
-- Runs with one value of a label, newest first. Their other labels are looked up, each by its key: a run without them is
-- not read. A label whose run has been deleted finds no run. Compared as rows, only the primary key fits. By equal
-- columns a generic plan for a million labels read them all, newest first, because it takes every label for frequent.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from (select x.tenant, x.key, x.value, x.journal from tape.run_labels x
  where (x.tenant, x.key, x.value, x.journal) < (:tenant, :key, :value, :before)
    and (x.tenant, x.key, x.value, x.journal) >= (:tenant, :key, :value, 0)
    and (:others::text is null or not exists (select 1 from json_array_elements(:others::json) c
      where (select 1 from json_array_elements_text(c.value -> 1) v cross join lateral (select 1 from tape.run_labels o
        where o.tenant = :tenant and o.key = c.value ->> 0 and o.value = v.value and o.journal = x.journal limit 1) o limit 1) is null))
  order by x.tenant desc, x.key desc, x.value desc, x.journal desc offset 0) x
  cross join lateral (select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash,
    r.labels, r.outcome, r.parent, r.root, r.created_at, r.ended_at from tape.runs r where r.journal = x.journal offset 0) r
  cross join lateral (select l.journal, l.notes, l.owner, l.next_reactor, l.queue from tape.leases l where l.journal = r.journal offset 0) l
where r.tenant = :tenant and (:workflow::text is null or r.workflow = :workflow)
  and (:lower::text is null or (r.id >= :lower and r.id < :upper))
  and (:status::text is null or $run_status = any(string_to_array(:status, ',')))
  and (:started_since::bigint is null or r.created_at >= :started_since) and (:started_until::bigint is null or r.created_at < :started_until)
  and (:ended_since::bigint is null or r.ended_at >= :ended_since) and (:ended_until::bigint is null or r.ended_at < :ended_until)
  and (not :in_doubt or (select true from tape.effects e
    where e.tenant = r.tenant and e.run = r.journal and e.status in ('UNKNOWN', 'STUCK') limit 1))
order by x.tenant desc, x.key desc, x.value desc, x.journal desc limit :limit;

-- name: run.unlisted
-- read
-- run.by_label among the runs whose labels only their own rows have, see labels.unlisted. Usually there are none.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from (select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
    r.parent, r.root, r.created_at, r.ended_at from tape.runs r
  where r.tenant = :tenant and r.labels is not null and r.labelled is null and r.journal < :before
  order by r.journal desc offset 0) r
  cross join lateral (select l.journal, l.notes, l.owner, l.next_reactor, l.queue from tape.leases l where l.journal = r.journal offset 0) l
where $has_labels
  and (:workflow::text is null or r.workflow = :workflow)
  and (:lower::text is null or (r.id >= :lower and r.id < :upper))
  and (:status::text is null or $run_status = any(string_to_array(:status, ',')))
  and (:started_since::bigint is null or r.created_at >= :started_since) and (:started_until::bigint is null or r.created_at < :started_until)
  and (:ended_since::bigint is null or r.ended_at >= :ended_since) and (:ended_until::bigint is null or r.ended_at < :ended_until)
  and (not :in_doubt or (select true from tape.effects e
    where e.tenant = r.tenant and e.run = r.journal and e.status in ('UNKNOWN', 'STUCK') limit 1))
order by r.journal desc limit :limit;

-- macro: $has_labels
-- Whether the run `r` has these labels: pairs of a key and its possible values.
(:labels is null or not exists (select 1 from json_each(:labels) g where not exists (select 1 from json_each(r.labels) j
    where j.key = g.value ->> 0 and j.value in (select h.value from json_each(g.value -> 1) h))));

-- name: label.counts
-- read
-- How many runs have each of these values of labels, counted up to :limit.
select g.value ->> 0 as key, g.value ->> 1 as value, (select count(*) from (select 1 from run_labels x
    where x.tenant = :tenant and x.key = g.value ->> 0 and x.value = g.value ->> 1 limit :limit)) as runs
from json_each(:pairs) g;

-- name: labels.adopt
-- unfenced: derived from columns that the same transaction has read
-- writes: run_labels
-- The labels of runs that a process of the previous version has created.
insert into run_labels(tenant, key, value, journal)
select r.tenant, j.key, j.value, r.journal
from json_each(:journals) i cross join runs r on r.journal = i.value cross join json_each(r.labels) j
where length(j.key) <= 128 and length(j.value) <= 128
on conflict do nothing;

-- name: labels.create
-- unfenced: part of the transaction that creates the run
-- writes: run_labels
insert into run_labels(tenant, key, value, journal)
select r.tenant, j.key, j.value, r.journal from runs r cross join json_each(r.labels) j where r.journal = :journal;

-- name: labels.drop
-- fenced
-- writes: run_labels
delete from run_labels where journal = :run and key in (select i.value from json_each(:keys) i);

-- name: labels.find
-- read
select r.labels, r.labelled is not null as listed from runs r where r.journal = :run and r.tenant = :tenant;

-- name: labels.listed
-- unfenced: as labels.adopt
-- writes: runs
update runs set labelled = 1 where journal in (select i.value from json_each(:journals) i) and labelled is null;

-- name: labels.put
-- fenced
-- writes: run_labels
insert into run_labels(tenant, key, value, journal)
select :tenant, j.key, j.value, :run from json_each(:labels) j where true
on conflict do nothing;

-- name: labels.set
-- fenced
-- writes: runs
update runs set labels = :labels, labelled = 1 where journal = :run;

-- name: labels.unlisted
-- read
-- Runs of any tenant whose labels only their own rows have: a process of the previous version has created them.
select r.journal from runs r indexed by runs_unlisted where r.labels is not null and r.labelled is null
order by r.tenant, r.journal limit :limit;

-- name: run.by_label
-- read
-- Runs with one value of a label, newest first. Their other labels are looked up, each by its key: a run without them is
-- not read. A label whose run has been deleted finds no run.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from run_labels x cross join runs r on r.journal = x.journal cross join leases l on l.journal = x.journal
where x.tenant = :tenant and x.key = :key and x.value = :value and x.journal < :before
  and (:others is null or not exists (select 1 from json_each(:others) g where not exists (
    select 1 from json_each(g.value -> 1) h cross join run_labels o
      on o.tenant = :tenant and o.key = g.value ->> 0 and o.value = h.value and o.journal = x.journal)))
  and +r.tenant = :tenant and (:workflow is null or r.workflow = :workflow)
  and (:lower is null or (+r.id >= :lower and +r.id < :upper))
  and (:status is null or instr(',' || :status || ',', ',' || $run_status || ',') > 0)
  and (:started_since is null or +r.created_at >= :started_since) and (:started_until is null or +r.created_at < :started_until)
  and (:ended_since is null or +r.ended_at >= :ended_since) and (:ended_until is null or +r.ended_at < :ended_until)
  and (not :in_doubt or exists (select 1 from effects e
    where e.tenant = r.tenant and e.run = r.journal and e.status in ('UNKNOWN', 'STUCK')))
order by x.journal desc limit :limit;

-- name: run.unlisted
-- read
-- run.by_label among the runs whose labels only their own rows have, see labels.unlisted. Usually there are none.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from runs r indexed by runs_unlisted cross join leases l on l.journal = r.journal
where r.tenant = :tenant and r.labels is not null and r.labelled is null and r.journal < :before
  and $has_labels
  and (:workflow is null or r.workflow = :workflow)
  and (:lower is null or (+r.id >= :lower and +r.id < :upper))
  and (:status is null or instr(',' || :status || ',', ',' || $run_status || ',') > 0)
  and (:started_since is null or +r.created_at >= :started_since) and (:started_until is null or +r.created_at < :started_until)
  and (:ended_since is null or +r.ended_at >= :ended_since) and (:ended_until is null or +r.ended_at < :ended_until)
  and (not :in_doubt or exists (select 1 from effects e
    where e.tenant = r.tenant and e.run = r.journal and e.status in ('UNKNOWN', 'STUCK')))
order by r.journal desc limit :limit;

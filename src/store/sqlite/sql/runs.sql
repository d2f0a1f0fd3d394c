-- name: run.progress
-- read
-- The progress of many runs, for callers that wait for them: one query for all, by the index of ids.
select r.journal, r.id, r.workflow, r.phase, r.outcome, r.ended_at, l.owner as lease_owner, l.next_reactor as lease_next_reactor, $slot_state
from json_each(:ids) i cross join runs r on r.tenant = :tenant and r.id = i.value cross join leases l on l.journal = r.journal;

-- name: run.descendants
-- read
-- All descendants of one root, oldest first; a page continues after :before.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from runs r cross join leases l on l.journal = r.journal
where r.root = :root and r.parent is not null and +r.tenant = :tenant and (:before is null or r.journal > :before)
  and (:workflow is null or r.workflow = :workflow)
  and $has_labels
  and (:status is null or instr(',' || :status || ',', ',' || $run_status || ',') > 0)
  and (:started_since is null or +r.created_at >= :started_since) and (:started_until is null or +r.created_at < :started_until)
  and (:ended_since is null or +r.ended_at >= :ended_since) and (:ended_until is null or +r.ended_at < :ended_until)
  and (not :in_doubt or exists (select 1 from effects e
    where e.tenant = r.tenant and e.run = r.journal and e.status in ('UNKNOWN', 'STUCK')))
order by r.journal limit :limit;

-- name: run.create
-- unfenced: creating is unique by the run's id; a child is created inside its parent's fenced append
-- writes: runs
insert into runs(journal, tenant, id, workflow, version, phase, input_hash, labels, parent, parent_pos, root, created_at, counted, labelled)
select :journal, x.tenant, :id, :workflow, :version, 'LIVE', :input_hash, :labels, :parent, :parent_pos, x.root, :at, coalesce(x.counted, 0), case when :labels is not null then 1 end
from (select coalesce(:tenant, (select p.tenant from runs p where p.journal = :parent)) as tenant,
             coalesce((select p.root from runs p where p.journal = :parent), :journal) as root,
             (select p.counted from runs p where p.journal = :parent) as counted) x
where not exists (select 1 from tombstones t where t.tenant = x.tenant and t.id = :id)
  and (:parent is null or exists (select 1 from runs p where p.journal = :parent and p.tenant = x.tenant and p.phase = 'LIVE'))
on conflict do nothing;

-- name: run.in_doubt
-- read
-- Runs with an effect or an obligation in doubt, newest first, by the index of those in doubt, which are few.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from (select distinct e.run from effects e indexed by effects_in_doubt
  where e.tenant = :tenant and e.status in ('UNKNOWN', 'STUCK') and e.run < :before) d
  cross join runs r on r.journal = d.run cross join leases l on l.journal = r.journal
where r.tenant = :tenant
  and (:workflow is null or r.workflow = :workflow)
  and $has_labels
  and (:status is null or instr(',' || :status || ',', ',' || $run_status || ',') > 0)
  and (:started_since is null or +r.created_at >= :started_since) and (:started_until is null or +r.created_at < :started_until)
  and (:ended_since is null or +r.ended_at >= :ended_since) and (:ended_until is null or +r.ended_at < :ended_until)
order by d.run desc limit :limit;

-- name: run.find
-- read
select journal, tenant, id, workflow, version, phase, cause, stuck_from, input_hash, labels, outcome, parent, root,
  created_at, ended_at from runs where tenant = :tenant and id = :id;

-- name: run.finished
-- read
-- Runs by end, latest first; a page continues after the run :before, which ended at :edge.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from runs r cross join leases l on l.journal = r.journal
where r.tenant = :tenant and r.ended_at is not null and r.ended_at >= :since and r.ended_at <= :through
  and (r.ended_at, r.journal) < (:edge, :before)
  and (:workflow is null or r.workflow = :workflow)
  and (:status is null or instr(',' || :status || ',', ',' || $run_status || ',') > 0)
  and (:started_since is null or +r.created_at >= :started_since) and (:started_until is null or +r.created_at < :started_until)
  and (not :in_doubt or exists (select 1 from effects e
    where e.tenant = r.tenant and e.run = r.journal and e.status in ('UNKNOWN', 'STUCK')))
order by r.ended_at desc, r.journal desc limit :limit;

-- name: run.get
-- read
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at,
  l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor from runs r join leases l on l.journal = r.journal
where r.tenant = :tenant and r.id = :id;

-- name: run.running
-- read
-- Runs that a process drives, newest first, among the leases that the tenant's workers hold.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from leases l indexed by leases_held cross join runs r on r.journal = l.journal
where l.owner is not null and l.kind <> 'name' and l.kind = 'run' and l.tenant = :tenant and l.journal < :before and r.phase = 'LIVE'
  and (:workflow is null or r.workflow = :workflow)
  and $has_labels
order by l.journal desc limit :limit;

-- name: run.by_prefix
-- read
-- Runs by id prefix, in the order of their ids: from :lower on, and before :upper.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from runs r cross join leases l on l.journal = r.journal
where r.tenant = :tenant and r.id >= :lower and r.id < :upper
  and (:workflow is null or r.workflow = :workflow)
  and (:status is null or instr(',' || :status || ',', ',' || $run_status || ',') > 0)
  and (:started_since is null or +r.created_at >= :started_since) and (:started_until is null or +r.created_at < :started_until)
  and (:ended_since is null or +r.ended_at >= :ended_since) and (:ended_until is null or +r.ended_at < :ended_until)
  and (not :in_doubt or exists (select 1 from effects e
    where e.tenant = r.tenant and e.run = r.journal and e.status in ('UNKNOWN', 'STUCK')))
order by r.id limit :limit;

-- name: run.live
-- read
-- Under the fence of the run: its phase cannot change before the commit.
select 1 as ok from runs where journal = :journal and tenant = :tenant and phase = 'LIVE';

-- name: run.parent
-- read
select parent from runs where journal = :journal;

-- name: run.phase
-- fenced
-- writes: runs
-- instr, not IN: a list of constants is built as a table of its own at every execution. No phase is part of another.
update runs set phase = :to, cause = case when phase = 'LIVE' then :cause else cause end,
  outcome = case when phase = 'LIVE' then :outcome else outcome end,
  stuck_from = case when :to = 'STUCK' then phase end,
  ended_at = case when instr('COMPLETED,FAILED,CANCELLED,COMPENSATED', :to) > 0 then :at end
where journal = :journal and instr(:from, phase) > 0
  and (phase <> 'STUCK' or stuck_from = :to)
  and (ended_at is null)
  and (phase <> 'ENDING' or :decided is null or instr(',' || :decided || ',', ',' || cause || ',') > 0)
  and (instr('COMPLETED,FAILED,CANCELLED,COMPENSATED', :to) = 0 or parent is :parent);

-- name: run.by_phase
-- read
-- Runs in one phase, newest first. The second condition is the index's own.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from runs r cross join leases l on l.journal = r.journal
where r.tenant = :tenant and r.phase = :phase and r.phase not in ('LIVE', 'COMPLETED') and r.journal < :before
  and (:workflow is null or r.workflow = :workflow)
  and $has_labels
order by r.journal desc limit :limit;

-- name: run.list_key
-- read
-- The position of a run in a list, after which a page continues.
select id, created_at, ended_at from runs where journal = :journal and tenant = :tenant;

-- name: run.rate
-- read
-- How many runs started and ended in each interval, counted up to :limit in each, by the indexes of those times.
with recursive b(at, n) as (values (:since, 1) union all select at + :size, n + 1 from b where n < :buckets)
select b.at,
  (select count(*) from (select 1 from runs r where r.tenant = :tenant
    and r.created_at >= b.at and r.created_at < b.at + :size limit :limit)) as started,
  (select count(*) from (select 1 from runs r where r.tenant = :tenant and r.ended_at is not null
    and r.ended_at >= b.at and r.ended_at < b.at + :size limit :limit)) as ended,
  (select count(*) from (select r.cause from runs r where r.tenant = :tenant and r.ended_at is not null
    and r.ended_at >= b.at and r.ended_at < b.at + :size limit :limit) x where x.cause = 'failed') as failed
from b;

-- name: run.root
-- unfenced: creating is unique by the run's id
-- writes: runs
-- A run without a parent; for a tenant with a quota only if it was admitted. Two lookups: IN would build a table of its
-- list each time. Like run.create, but it reads nothing of the table it inserts into, which would be materialised.
insert into runs(journal, tenant, id, workflow, version, phase, input_hash, labels, root, created_at, counted, labelled)
select :journal, :tenant, :id, :workflow, :version, 'LIVE', :input_hash, :labels, :journal, :at, :admitted, case when :labels is not null then 1 end
where not exists (select 1 from tombstones t where t.tenant = :tenant and t.id = :id)
  and (:admitted or (not exists (select 1 from quotas q where q.tenant = :tenant and (q.runs is not null or q.bytes is not null))
    and not exists (select 1 from quotas d where d.tenant = '' and (d.runs is not null or d.bytes is not null))))
on conflict do nothing;

-- name: run.assert_continues
-- read
-- Returns a row only if the run is live and every effect of its current generation is settled.
select 1 as ok from runs r where r.journal = :journal and r.phase = 'LIVE' and not exists (
  select 1 from effects e where e.run = :journal and e.pos >= (select l.begins_pos from leases l where l.journal = :journal)
    and e.role = 'effect' and e.status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK'));

-- name: run.assert_settled
-- read
-- Returns a row only if nothing of the run is open. :armed: armed obligations count as open (the run did not end well).
-- A run is responsible for the obligations of its descendants; these are queried only if the tree has obligations.
select 1 as ok where not exists (
    select 1 from effects e where e.run = :journal and e.role = 'effect'
      and e.status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK'))
  and not exists (
    select 1 from effects e where e.root = (select r.root from runs r where r.journal = :journal)
      and e.role = 'compensation' and e.surplus = 0
      and (e.status in ('PENDING', 'COMMITTED', 'UNKNOWN', 'STUCK') or (:armed and e.status = 'ARMED'))
      and (e.run = :journal or e.root = :journal or e.run in (
        with recursive tree(journal) as (select :journal union all select c.journal from runs c join tree on c.parent = tree.journal)
        select journal from tree)))
  and not exists (select 1 from gates g where g.run = :journal and g.status = 'OPEN')
  and not exists (select 1 from timers t where t.run = :journal and t.status = 'SET')
  and not exists (select 1 from runs c where c.parent = :journal and c.ended_at is null);

-- name: run.started
-- read
-- Runs by start, newest first; a page continues after the run :before, which started at :edge.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from runs r cross join leases l on l.journal = r.journal
where r.tenant = :tenant and r.created_at >= :since and r.created_at <= :through
  and (r.created_at, r.journal) < (:edge, :before)
  and (:workflow is null or r.workflow = :workflow)
  and (:status is null or instr(',' || :status || ',', ',' || $run_status || ',') > 0)
  and (:ended_since is null or +r.ended_at >= :ended_since) and (:ended_until is null or +r.ended_at < :ended_until)
  and (not :in_doubt or exists (select 1 from effects e
    where e.tenant = r.tenant and e.run = r.journal and e.status in ('UNKNOWN', 'STUCK')))
order by r.created_at desc, r.journal desc limit :limit;

-- name: run.runnable
-- read
-- Runnable runs, newest first, in the order of an index that holds only those waiting for recovery.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from leases l indexed by leases_recovery cross join runs r on r.journal = l.journal
where l.next_reactor = 'recovery' and l.owner is null and l.kind = 'run' and l.tenant = :tenant and l.journal < :before
  and r.phase = 'LIVE'
  and (:workflow is null or r.workflow = :workflow)
  and $has_labels
order by l.journal desc limit :limit;

-- name: run.runnable_pinned
-- read
-- Runnable runs, newest first, that wait for their builds, in the order of their index.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from leases l indexed by leases_pinned cross join runs r on r.journal = l.journal
where l.build is not null and l.next_reactor is not null and l.owner is null and l.kind = 'run' and l.tenant = :tenant and l.journal < :before
  and r.phase = 'LIVE'
  and (:workflow is null or r.workflow = :workflow)
  and $has_labels
order by l.journal desc limit :limit;

-- name: tombstone.find
-- read
select cast(token as text) as token from tombstones where tenant = :tenant and id = :id;

-- name: tombstone.list_key
-- read
-- run.list_key, for a deleted run.
select id, created_at, ended_at from tombstones where journal = :journal and tenant = :tenant;

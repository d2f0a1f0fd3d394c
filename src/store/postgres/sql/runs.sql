-- name: run.progress
-- read
-- The progress of many runs, for callers that wait for them: one query for all, by the index of ids.
select r.journal, r.id, r.workflow, r.phase, r.outcome, r.ended_at, l.owner as lease_owner, l.next_reactor as lease_next_reactor, $slot_state
from json_array_elements_text(:ids::json) i(id)
join tape.runs r on r.tenant = :tenant and r.id = i.id cross join lateral (select l.journal, l.owner, l.next_reactor, l.queue from tape.leases l where l.journal = r.journal limit 1) l;

-- name: run.descendants
-- read
-- All descendants of one root, oldest first; a page continues after :before. The + keeps the planner from the order of
-- all runs.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from tape.runs r cross join lateral (select l.journal, l.notes, l.owner, l.next_reactor, l.queue from tape.leases l where l.journal = r.journal offset 0) l
where r.root = :root and r.root <> r.journal and r.tenant is not distinct from :tenant and (:before::bigint is null or r.journal > :before)
  and (:workflow::text is null or r.workflow = :workflow)
  and $has_labels
  and (:status::text is null or $run_status = any(string_to_array(:status, ',')))
  and (:started_since::bigint is null or r.created_at >= :started_since) and (:started_until::bigint is null or r.created_at < :started_until)
  and (:ended_since::bigint is null or r.ended_at >= :ended_since) and (:ended_until::bigint is null or r.ended_at < :ended_until)
  and (not :in_doubt or (select true from tape.effects e
    where e.tenant = r.tenant and e.run = r.journal and e.status in ('UNKNOWN', 'STUCK') limit 1))
order by r.journal + 0 limit :limit;

-- name: run.create
-- unfenced: creating is unique by the run's id; a child is created inside its parent's fenced append
-- writes: runs
-- The || as in run.assert_settled.
insert into tape.runs(journal, tenant, id, workflow, version, phase, input_hash, labels, parent, parent_pos, root, created_at, counted, labelled)
select :journal, x.tenant, :id, :workflow, :version, 'LIVE', :input_hash, :labels, :parent, :parent_pos, x.root, tape.now_ms(), coalesce(x.counted, false), case when :labels::text is not null then true end
from (select coalesce(:tenant, (select p.tenant from tape.runs p where p.journal = :parent)) as tenant,
             coalesce((select p.root from tape.runs p where p.journal = :parent), :journal) as root,
             (select p.counted from tape.runs p where p.journal = :parent) as counted) x
where not exists (select 1 from tape.tombstones t where t.tenant = x.tenant and t.id = :id)
  and (:parent::bigint is null or exists (select 1 from tape.runs p where p.journal = :parent and p.tenant = x.tenant and p.phase || '' = 'LIVE'))
on conflict do nothing;

-- name: run.in_doubt
-- read
-- Runs with an effect or an obligation in doubt, newest first, by the index of those in doubt, which are few.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from (select distinct e.run from tape.effects e
  where e.tenant = :tenant and e.status in ('UNKNOWN', 'STUCK') and e.run < :before order by e.run desc) d
  cross join lateral (select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash,
    r.labels, r.outcome, r.parent, r.root, r.created_at, r.ended_at from tape.runs r where r.journal = d.run offset 0) r
  cross join lateral (select l.journal, l.notes, l.owner, l.next_reactor, l.queue from tape.leases l where l.journal = r.journal offset 0) l
where r.tenant = :tenant
  and (:workflow::text is null or r.workflow = :workflow)
  and $has_labels
  and (:status::text is null or $run_status = any(string_to_array(:status, ',')))
  and (:started_since::bigint is null or r.created_at >= :started_since) and (:started_until::bigint is null or r.created_at < :started_until)
  and (:ended_since::bigint is null or r.ended_at >= :ended_since) and (:ended_until::bigint is null or r.ended_at < :ended_until)
order by d.run desc limit :limit;

-- name: run.find
-- read
select journal, tenant, id, workflow, version, phase, cause, stuck_from, input_hash, labels, outcome, parent, root,
  created_at, ended_at from tape.runs where tenant = :tenant and id = :id;

-- name: run.finished
-- read
-- Runs by end, latest first; a page continues after the run :before, which ended at :edge.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from tape.runs r cross join lateral (select l.journal, l.notes, l.owner, l.next_reactor, l.queue from tape.leases l where l.journal = r.journal offset 0) l
where r.tenant = :tenant and r.ended_at is not null and r.ended_at >= :since and r.ended_at <= :through
  and (r.ended_at, r.journal) < (:edge, :before)
  and (:workflow::text is null or r.workflow = :workflow)
  and (:status::text is null or $run_status = any(string_to_array(:status, ',')))
  and (:started_since::bigint is null or r.created_at >= :started_since) and (:started_until::bigint is null or r.created_at < :started_until)
  and (not :in_doubt or (select true from tape.effects e
    where e.tenant = r.tenant and e.run = r.journal and e.status in ('UNKNOWN', 'STUCK') limit 1))
order by r.ended_at desc, r.journal desc limit :limit;

-- name: run.get
-- read
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor from tape.runs r
cross join lateral (select l.journal, l.notes, l.owner, l.next_reactor, l.queue from tape.leases l where l.journal = r.journal limit 1) l
where r.tenant = :tenant and r.id = :id;

-- name: run.running
-- read
-- Runs that a process drives, newest first, among the leases that the tenant's workers hold. The + as in run.runnable.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from tape.leases l cross join lateral (select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause,
  r.stuck_from, r.input_hash, r.labels, r.outcome, r.parent, r.root, r.created_at, r.ended_at
  from tape.runs r where r.journal = l.journal offset 0) r
where l.owner is not null and l.kind <> 'name' and l.kind || '' = 'run' and l.tenant = :tenant and l.journal + 0 < :before and r.phase = 'LIVE'
  and (:workflow::text is null or r.workflow = :workflow)
  and $has_labels
order by l.journal + 0 desc limit :limit;

-- name: run.by_prefix
-- read
-- Runs by id prefix, in the order of their ids: from :lower on, and before :upper.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from tape.runs r cross join lateral (select l.journal, l.notes, l.owner, l.next_reactor, l.queue from tape.leases l where l.journal = r.journal offset 0) l
where r.tenant = :tenant and r.id >= :lower and r.id < :upper
  and (:workflow::text is null or r.workflow = :workflow)
  and (:status::text is null or $run_status = any(string_to_array(:status, ',')))
  and (:started_since::bigint is null or r.created_at >= :started_since) and (:started_until::bigint is null or r.created_at < :started_until)
  and (:ended_since::bigint is null or r.ended_at >= :ended_since) and (:ended_until::bigint is null or r.ended_at < :ended_until)
  and (not :in_doubt or (select true from tape.effects e
    where e.tenant = r.tenant and e.run = r.journal and e.status in ('UNKNOWN', 'STUCK') limit 1))
order by r.id limit :limit;

-- name: run.live
-- read
-- Under the fence of the run: its phase cannot change before the commit.
select 1 as ok from tape.runs where journal = :journal and tenant = :tenant and phase = 'LIVE';

-- name: run.parent
-- read
select parent from tape.runs where journal = :journal;

-- name: run.phase
-- fenced
-- writes: runs
update tape.runs set phase = :to, cause = case when phase = 'LIVE' then :cause else cause end,
  outcome = case when phase = 'LIVE' then :outcome else outcome end,
  stuck_from = case when :to = 'STUCK' then phase end,
  ended_at = case when :to in ('COMPLETED', 'FAILED', 'CANCELLED', 'COMPENSATED') then tape.now_ms() end
where journal = :journal and phase = any(string_to_array(:from, ','))
  and (phase <> 'STUCK' or stuck_from = :to)
  and (ended_at is null)
  and (phase <> 'ENDING' or :decided::text is null or cause = any(string_to_array(:decided, ',')))
  and (:to not in ('COMPLETED', 'FAILED', 'CANCELLED', 'COMPENSATED') or parent is not distinct from :parent);

-- name: run.by_phase
-- read
-- Runs in one phase, newest first. The second condition is the index's own.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from tape.runs r cross join lateral (select l.journal, l.notes, l.owner, l.next_reactor, l.queue from tape.leases l where l.journal = r.journal offset 0) l
where r.tenant = :tenant and r.phase = :phase and r.phase not in ('LIVE', 'COMPLETED') and r.journal < :before
  and (:workflow::text is null or r.workflow = :workflow)
  and $has_labels
order by r.journal desc limit :limit;

-- name: run.list_key
-- read
-- The position of a run in a list, after which a page continues.
select id, created_at, ended_at from tape.runs where journal = :journal and tenant = :tenant;

-- name: run.rate
-- read
-- How many runs started and ended in each interval, counted up to :limit in each, by the indexes of those times.
select b.at,
  (select count(*) from (select 1 from tape.runs r where r.tenant = :tenant
    and r.created_at >= b.at and r.created_at < b.at + :size limit :limit) x) as started,
  (select count(*) from (select 1 from tape.runs r where r.tenant = :tenant and r.ended_at is not null
    and r.ended_at >= b.at and r.ended_at < b.at + :size limit :limit) x) as ended,
  (select count(*) from (select r.cause from tape.runs r where r.tenant = :tenant and r.ended_at is not null
    and r.ended_at >= b.at and r.ended_at < b.at + :size limit :limit) x where x.cause = 'failed') as failed
from (select :since::bigint + :size::bigint * g.n as at from generate_series(0, :buckets::bigint - 1) g(n)) b order by b.at;

-- name: run.root
-- unfenced: creating is unique by the run's id
-- writes: runs
-- A run without a parent; for a tenant with a quota only if it was admitted.
insert into tape.runs(journal, tenant, id, workflow, version, phase, input_hash, labels, root, created_at, counted, labelled)
select :journal, :tenant, :id, :workflow, :version, 'LIVE', :input_hash, :labels, :journal, tape.now_ms(), :admitted, case when :labels::text is not null then true end
where not exists (select 1 from tape.tombstones t where t.tenant = :tenant and t.id = :id)
  and (:admitted or not exists (select 1 from tape.quotas q where q.tenant in (:tenant, '') and (q.runs is not null or q.bytes is not null)))
on conflict do nothing;

-- name: run.assert_continues
-- read
-- Returns a row only if the run is live and every effect of its current generation is settled.
select 1 as ok from tape.runs r where r.journal = :journal and r.phase = 'LIVE' and not exists (
  select 1 from tape.effects e where e.run = :journal and e.pos >= (select l.begins_pos from tape.leases l where l.journal = :journal)
    and e.role = 'effect' and e.status || '' in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK'));

-- name: run.assert_settled
-- read
-- Returns a row only if nothing of the run is open. :armed: armed obligations count as open (the run did not end well).
-- A run is responsible for the obligations of its descendants; these are queried only if the tree has obligations. The
-- || keeps the planner from the index of all open gates or set timers of any run, which it prefers until the tables
-- have been analysed.
select 1 as ok where not exists (
    select 1 from tape.effects e where e.run = :journal and e.role = 'effect'
      and e.status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK'))
  and not exists (
    select 1 from tape.effects e where e.root = (select r.root from tape.runs r where r.journal = :journal)
      and e.role = 'compensation' and not e.surplus
      and (e.status in ('PENDING', 'COMMITTED', 'UNKNOWN', 'STUCK') or (:armed and e.status = 'ARMED'))
      and (e.run = :journal or e.root = :journal or e.run in (
        with recursive tree(journal) as (
          select r.journal from tape.runs r where r.journal = :journal
          union all select c.journal from tape.runs c join tree on c.parent = tree.journal)
        select journal from tree)))
  and not exists (select 1 from tape.gates g where g.run = :journal and g.status || '' = 'OPEN')
  and not exists (select 1 from tape.timers t where t.run = :journal and t.status || '' = 'SET')
  and not exists (select 1 from tape.runs c where c.parent = :journal and c.ended_at is null);

-- name: run.started
-- read
-- Runs by start, newest first; a page continues after the run :before, which started at :edge.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from tape.runs r cross join lateral (select l.journal, l.notes, l.owner, l.next_reactor, l.queue from tape.leases l where l.journal = r.journal offset 0) l
where r.tenant = :tenant and r.created_at >= :since and r.created_at <= :through
  and (r.created_at, r.journal) < (:edge, :before)
  and (:workflow::text is null or r.workflow = :workflow)
  and (:status::text is null or $run_status = any(string_to_array(:status, ',')))
  and (:ended_since::bigint is null or r.ended_at >= :ended_since) and (:ended_until::bigint is null or r.ended_at < :ended_until)
  and (not :in_doubt or (select true from tape.effects e
    where e.tenant = r.tenant and e.run = r.journal and e.status in ('UNKNOWN', 'STUCK') limit 1))
order by r.created_at desc, r.journal desc limit :limit;

-- name: run.runnable
-- read
-- Runnable runs, newest first, in the order of an index that holds only those waiting for recovery. The tenant as in
-- effect.list.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from tape.leases l cross join lateral (select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause,
  r.stuck_from, r.input_hash, r.labels, r.outcome, r.parent, r.root, r.created_at, r.ended_at
  from tape.runs r where r.journal = l.journal offset 0) r
where l.next_reactor = 'recovery' and l.owner is null and l.kind || '' = 'run' and l.tenant >= :tenant and l.tenant <= :tenant
  and l.journal < :before
  and r.phase = 'LIVE'
  and (:workflow::text is null or r.workflow = :workflow)
  and $has_labels
order by l.tenant desc, l.journal desc limit :limit;

-- name: run.runnable_pinned
-- read
-- Runnable runs, newest first, that wait for their builds, in the order of their index. The tenant as in
-- effect.list.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor
from tape.leases l cross join lateral (select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause,
  r.stuck_from, r.input_hash, r.labels, r.outcome, r.parent, r.root, r.created_at, r.ended_at
  from tape.runs r where r.journal = l.journal offset 0) r
where l.build is not null and l.next_reactor is not null and l.owner is null and l.kind || '' = 'run' and l.tenant >= :tenant and l.tenant <= :tenant
  and l.journal < :before
  and r.phase = 'LIVE'
  and (:workflow::text is null or r.workflow = :workflow)
  and $has_labels
order by l.tenant desc, l.journal desc limit :limit;

-- name: tombstone.find
-- read
select cast(token as text) as token from tape.tombstones where tenant = :tenant and id = :id;

-- name: tombstone.list_key
-- read
-- run.list_key, for a deleted run.
select id, created_at, ended_at from tape.tombstones where journal = :journal and tenant = :tenant;

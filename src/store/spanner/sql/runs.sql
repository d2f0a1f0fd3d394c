-- macro: $run_columns
-- A run `r` with its lease `l` as readers see it.
r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.next_reactor as lease_next_reactor;

-- macro: $is_within
-- Whether the effect `e` belongs to the run :run or to a descendant of it: a run has the numbers of all runs above it.
(e.run = :run or e.root = :run or :run in unnest((select c.path from seen_runs c where c.journal = e.run)));

-- macro: $has_status
-- Whether the run `r` with the lease `l` has one of these statuses.
(:status is null or case when r.phase <> 'LIVE' then r.phase when l.owner is not null then 'RUNNING' when l.next_reactor is not null then 'RUNNABLE'
    when l.queue is not null and exists (select 1 from queue_slots s where s.journal = l.journal and s.state = 'QUEUED') then 'QUEUED'
    else 'WAITING' end in unnest(split(:status, ',')));

-- macro: $started_within
(:started_since is null or r.created_at >= :started_since) and (:started_until is null or r.created_at < :started_until);

-- macro: $ended_within
(:ended_since is null or r.ended_at >= :ended_since) and (:ended_until is null or r.ended_at < :ended_until);

-- macro: $is_in_doubt
(not :in_doubt or exists (select 1 from effects@{force_index=effects_in_doubt, $sparse} e where e.doubted = r.tenant and e.run = r.journal));

-- name: run.progress
-- read
-- The progress of many runs, for callers that wait for them: one query for all, by the index of ids.
select r.journal, r.id, r.workflow, r.phase, r.outcome, r.ended_at, l.owner as lease_owner, l.next_reactor as lease_next_reactor, $slot_state
from unnest(json_value_array(:ids)) i join runs@{force_index=runs_id} r on r.tenant = :tenant and r.id = i join leases l on l.journal = r.journal;

-- name: run.descendants
-- read
-- All descendants of one root, oldest first; a page continues after :before.
select $run_columns from runs@{force_index=runs_tree, $sparse} r join leases l on l.journal = r.journal
where r.under = :root and r.tenant = :tenant and (:before is null or r.born > :before)
  and (:workflow is null or r.workflow = :workflow) and $has_labels and $has_status and $started_within and $ended_within and $is_in_doubt
order by r.born limit :limit;

-- name: run.create
-- unfenced: creating is unique by the run's id; a child is created inside its parent's fenced append
-- writes: runs
insert into runs(journal, tenant, id, workflow, version, phase, input_hash, labels, parent, parent_pos, root, path, created_at, counted)
select :journal, x.tenant, :id, :workflow, :version, 'LIVE', :input_hash, :labels, :parent, :parent_pos, coalesce(p.root, :journal),
  case when p.journal is not null then array_concat(coalesce(p.path, array<int64>[]), [p.journal]) end, :at, coalesce(p.counted, false)
from (select coalesce(:tenant, (select t.tenant from runs t where t.journal = :parent)) as tenant) x
left join runs p on p.journal = :parent
where not exists (select 1 from tombstones t where t.tenant = x.tenant and t.id = :id)
  and not exists (select 1 from runs@{force_index=runs_id} o where o.tenant = x.tenant and o.id = :id)
  and (:parent is null or (p.tenant = x.tenant and p.phase = 'LIVE'));

-- name: run.in_doubt
-- read
-- Runs with an effect or an obligation in doubt, newest first, by the index of those in doubt, which are few.
select $run_columns
from (select distinct e.run from effects@{force_index=effects_in_doubt, $sparse} e where e.doubted = :tenant) d
  join runs r on r.journal = d.run join leases l on l.journal = r.journal
where r.tenant = :tenant and r.born < :before
  and (:workflow is null or r.workflow = :workflow) and $has_labels and $has_status and $started_within and $ended_within
order by r.born desc limit :limit;

-- name: run.find
-- read
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome, r.parent, r.root,
  r.created_at, r.ended_at from runs@{force_index=runs_id} r where r.tenant = :tenant and r.id = :id;

-- name: run.finished
-- read
-- Runs by end, latest first, shard by shard; a page continues after the run :before, which ended at :edge.
select $run_columns from $shards s
cross join unnest(array(select r.journal from runs@{force_index=runs_ended, $sparse} r join leases l on l.journal = r.journal
  where r.tenant = :tenant and r.shard = s and r.ended_at is not null and r.ended_at >= :since and r.ended_at <= :through
    and (r.ended_at < :edge or (r.ended_at = :edge and r.born < :before))
    and (:workflow is null or r.workflow = :workflow) and $has_status and $started_within and $is_in_doubt
  order by r.ended_at desc, r.born desc limit :limit)) j
join runs r on r.journal = j join leases l on l.journal = j
order by r.ended_at desc, r.born desc limit :limit;

-- name: run.get
-- read
select $run_columns from runs@{force_index=runs_id} r join leases l on l.journal = r.journal
where r.tenant = :tenant and r.id = :id;

-- name: run.running
-- read
-- Runs that a process drives, newest first, among the leases that the tenant's workers hold.
select $run_columns from leases@{force_index=leases_held, $sparse} l join runs r on r.journal = l.journal
where l.held = :tenant and l.kind = 'run' and l.born < :before and r.phase = 'LIVE'
  and (:workflow is null or r.workflow = :workflow) and $has_labels
order by l.born desc limit :limit;

-- name: run.by_prefix
-- read
-- Runs by id prefix, in the order of their ids: from :lower on, and before :upper.
select $run_columns from runs@{force_index=runs_id} r join leases l on l.journal = r.journal
where r.tenant = :tenant and r.id >= :lower and r.id < :upper
  and (:workflow is null or r.workflow = :workflow) and $has_status and $started_within and $ended_within and $is_in_doubt
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
update runs set phase = :to, cause = case when phase = 'LIVE' then :cause else cause end,
  outcome = case when phase = 'LIVE' then :outcome else outcome end,
  stuck_from = case when :to = 'STUCK' then phase end,
  ended_at = case when :to in ('COMPLETED', 'FAILED', 'CANCELLED', 'COMPENSATED') then :at end
where journal = :journal and phase in unnest(split(:from, ','))
  and (phase <> 'STUCK' or stuck_from = :to)
  and ended_at is null
  and (phase <> 'ENDING' or :decided is null or cause in unnest(split(:decided, ',')))
  and (:to not in ('COMPLETED', 'FAILED', 'CANCELLED', 'COMPENSATED') or coalesce(parent = :parent, parent is null and :parent is null));

-- name: run.by_phase
-- read
-- Runs in one phase, newest first, shard by shard.
select $run_columns from $shards s
cross join unnest(array(select r.journal from runs@{force_index=runs_phase, $sparse} r
  where r.tenant = :tenant and r.notable = :phase and r.shard = s and r.born < :before
    and (:workflow is null or r.workflow = :workflow) and $has_labels
  order by r.born desc limit :limit)) j
join runs r on r.journal = j join leases l on l.journal = j
order by r.born desc limit :limit;

-- name: run.list_key
-- read
-- The position of a run in a list, after which a page continues.
select id, created_at, ended_at from runs where journal = :journal and tenant = :tenant;

-- name: run.rate
-- read
-- How many runs started and ended in each interval, counted up to :limit in each, by the indexes of those times.
select b as `at`,
  (select count(*) from (select r.journal from runs@{force_index=runs_created} r where r.tenant = :tenant
    and r.created_at >= b and r.created_at < b + :size limit :limit)) as started,
  (select count(*) from (select r.journal from runs@{force_index=runs_ended, $sparse} r where r.tenant = :tenant and r.ended_at is not null
    and r.ended_at >= b and r.ended_at < b + :size limit :limit)) as ended,
  (select countif(x.cause = 'failed') from (select r.cause from runs@{force_index=runs_ended, $sparse} r where r.tenant = :tenant and r.ended_at is not null
    and r.ended_at >= b and r.ended_at < b + :size limit :limit) x) as failed
from unnest(generate_array(:since, :since + (:buckets - 1) * :size, :size)) b order by b;

-- name: run.root
-- unfenced: creating is unique by the run's id
-- writes: runs
-- A run without a parent; for a tenant with a quota only if it was admitted.
insert into runs(journal, tenant, id, workflow, version, phase, input_hash, labels, root, created_at, counted)
select :journal, :tenant, :id, :workflow, :version, 'LIVE', :input_hash, :labels, :journal, :at, :admitted
from unnest([1])
where not exists (select 1 from tombstones t where t.tenant = :tenant and t.id = :id)
  and not exists (select 1 from runs@{force_index=runs_id} o where o.tenant = :tenant and o.id = :id)
  and (:admitted or not exists (select 1 from quotas q where q.tenant in (:tenant, '') and (q.runs is not null or q.bytes is not null)));

-- name: run.assert_continues
-- read
-- Returns a row only if the run is live and every effect of its current generation is settled.
select 1 as ok from runs r where r.journal = :journal and r.phase = 'LIVE' and not exists (
  select 1 from effects e where e.run = :journal and e.pos >= (select l.begins_pos from leases l where l.journal = :journal)
    and e.role = 'effect' and e.status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK'));

-- name: run.assert_settled
-- read
-- Returns a row only if nothing of the run is open. :armed: armed obligations count as open (the run did not end well).
-- A run is responsible for the obligations of its descendants.
select 1 as ok from unnest([1]) where not exists (
    select 1 from effects e where e.run = :journal and e.role = 'effect'
      and e.status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK'))
  and not exists (
    select 1 from effects@{force_index=effects_obligations, $sparse} e where e.owed = (select r.root from runs r where r.journal = :journal)
      and not e.surplus
      and (e.status in ('PENDING', 'COMMITTED', 'UNKNOWN', 'STUCK') or (:armed and e.status = 'ARMED'))
      and (e.run = :journal or e.root = :journal or :journal in unnest((select c.path from runs c where c.journal = e.run))))
  and not exists (select 1 from gates g where g.run = :journal and g.status = 'OPEN')
  and not exists (select 1 from timers t where t.run = :journal and t.status = 'SET')
  and not exists (select 1 from runs@{force_index=runs_parent, $sparse} c where c.parent = :journal and c.ended_at is null);

-- name: run.started
-- read
-- Runs by start, newest first, shard by shard; a page continues after the run :before, which started at :edge.
select $run_columns from $shards s
cross join unnest(array(select r.journal from runs@{force_index=runs_created} r join leases l on l.journal = r.journal
  where r.tenant = :tenant and r.shard = s and r.created_at >= :since and r.created_at <= :through
    and (r.created_at < :edge or (r.created_at = :edge and r.born < :before))
    and (:workflow is null or r.workflow = :workflow) and $has_status and $ended_within and $is_in_doubt
  order by r.created_at desc, r.born desc limit :limit)) j
join runs r on r.journal = j join leases l on l.journal = j
order by r.created_at desc, r.born desc limit :limit;

-- name: run.runnable
-- read
-- Runnable runs, newest first, shard by shard of an index that holds only those waiting for recovery.
select $run_columns from $shards s
cross join unnest(array(select l.journal from leases@{force_index=leases_recovery, $sparse} l join runs r on r.journal = l.journal
  where l.runnable = :tenant and l.shard = s and l.born < :before and r.phase = 'LIVE'
    and (:workflow is null or r.workflow = :workflow) and $has_labels
  order by l.born desc limit :limit)) j
join runs r on r.journal = j join leases l on l.journal = j
order by l.born desc limit :limit;

-- name: run.runnable_pinned
-- read
-- Runnable runs, newest first, that wait for their builds, shard by shard of their index.
select $run_columns from $shards s
cross join unnest(array(select l.journal from leases@{force_index=leases_pinned, $sparse} l join runs r on r.journal = l.journal
  where l.pinned = :tenant and l.shard = s and l.born < :before and r.phase = 'LIVE'
    and (:workflow is null or r.workflow = :workflow) and $has_labels
  order by l.born desc limit :limit)) j
join runs r on r.journal = j join leases l on l.journal = j
order by l.born desc limit :limit;

-- name: tombstone.find
-- read
select cast(token as string) as token from tombstones where tenant = :tenant and id = :id;

-- name: tombstone.list_key
-- read
-- run.list_key, for a deleted run.
select t.id, t.created_at, t.ended_at from tombstones@{force_index=tombstones_journal, $sparse} t where t.journal = :journal and t.tenant = :tenant;

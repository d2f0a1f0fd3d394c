-- macro: $recovery_of
-- The reactor that drives the run of the lease that is updated: see src/model/build.ts.
('recovery' || coalesce('@' || build, ''));

-- macro: $reactor_of
-- The reactor that a writer asks for; a run that is pinned waits for its build.
(:next_reactor || case when :next_reactor = 'recovery' and build is not null then '@' || build else '' end);

-- macro: $lease_columns
-- A lease `l` as readers see it.
l.journal, l.kind, l.tenant, l.run, l.owner, l.label, l.reactor, l.ttl_ms, l.expires_at, l.acquired_at, l.reason,
  l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at, l.progress_note, l.max_stall_ms, l.doomed, l.paused,
  l.stalled, l.notes, l.open, l.next_reactor, l.due_at, l.last_end_reason, l.workflow, l.build, l.checkpoint, l.begins,
  cast(l.token as string) as token, cast(l.nonce as string) as nonce, :now as now;

-- macro: $sparse
-- Rows with a null are in no null-filtered index. The emulator asks for a promise that no such row is wanted; the service
-- derives it from the condition.
spanner_emulator.disable_query_null_filtered_index_check=true;

-- macro: $shards
-- The eight parts of an index in the order of time.
unnest([0, 1, 2, 3, 4, 5, 6, 7]);

-- name: fence
-- read
-- THE FENCE (see src/model/fence.ts). In a read-write transaction Spanner holds a shared lock on each cell that is read,
-- until the commit. A takeover, a release and a doom write `token`, `nonce` or `doomed` of this row, which needs the
-- exclusive lock of that cell: they wait for our commit, or one of the two transactions is aborted and runs again from its
-- fence. So what is read here holds until our commit. A renewal writes `expires_at`, `renewals`, `renewed_at`,
-- `longest_gap_ms`, `progress…` and `stalled`: other cells, and none of them is in an index, so that heartbeats pass.
-- A note writes `notes` and waits like a takeover: parking and ending compare that counter.
-- Returns a row only if tenant, token, nonce and head are the writer's own.
select l.kind, l.tenant, l.run, l.notes, l.queue, :now as now from leases l
where l.journal = :journal and l.tenant = :tenant and l.token = :token and l.nonce = :nonce and not l.doomed
  and exists (select 1 from records p where p.journal = :journal and p.seq = :after)
  and not exists (select 1 from records s where s.journal = :journal and s.seq = :after + 1);

-- name: fence.explain
-- read
-- Why the fence returned no row; nothing if the journal is another tenant's.
select cast(l.token as string) as token, cast(l.nonce as string) as nonce, l.doomed, l.kind, l.notes, l.owner, l.label, l.reactor, l.reason,
  (select max(r.seq) from records r where r.journal = l.journal) as head
from leases l where l.journal = :journal and l.tenant = :tenant;

-- name: lease.begin
-- fenced
-- writes: leases
-- A new generation of a run, whose record is :seq. Its positions and its notes come after those of the earlier ones.
update leases set begins = :seq, begins_pos = :pos, begins_notes = :notes_taken
where journal = :journal and kind = 'run' and begins < :seq and begins_pos < :pos and begins_notes <= :notes_taken and notes >= :notes_taken;

-- name: lease.create
-- unfenced: the row of a journal that is created in the same transaction; it cannot have a holder yet
-- writes: leases
insert into leases(journal, kind, tenant, run, workflow, token, ttl_ms, expires_at, acquired_at, renewed_at, progress_at, max_stall_ms,
  next_reactor, due_at, queue)
select :journal, :kind, $tenant_of, :run, :workflow, :token,
  0, :now, :now, :now, :now, :max_stall_ms, :next_reactor, :now, $queue_id from unnest([1]);

-- name: lease.doom
-- unfenced: announces a takeover; needed only where a takeover could starve behind open guarded transactions
-- writes: leases
update leases set doomed = true
where journal = :journal and token = :token and owner is not null and (:force or expires_at <= :now);

-- name: lease.due
-- read
-- Work of one tenant that waits for a reactor, oldest first in each of these workflows, shard by shard. The index holds
-- only such work. Items are in the backlog without a name. Items whose callee is at capacity are skipped.
select d.journal from unnest(json_value_array(:workflows)) w cross join $shards s
cross join unnest(array(
  select as struct x.journal, x.due_at from leases@{force_index=leases_due, $sparse} x
  where x.next_reactor = :next_reactor and x.tenant = :tenant and x.workflow = w and x.shard = s and x.due_at <= :now
    and not x.paused and (:kind is null or x.kind = :kind)
    and (x.workflow <> '' or x.kind <> 'run' or :kind is null)
    and (:full is null or x.kind <> 'item'
      or coalesce((select coalesce(e.connector, e.name) from effects@{force_index=effects_item, $sparse} e where e.item = x.journal limit 1), '')
        not in unnest(json_value_array(:full)))
  order by x.due_at limit :limit)) d
order by d.due_at limit :limit;

-- name: lease.first
-- unfenced: the row of a run that is created in the same transaction, with its creator's first term already started
-- writes: leases
insert into leases(journal, kind, tenant, run, workflow, token, nonce, owner, label, reactor, ttl_ms, expires_at, acquired_at,
  renewed_at, progress_at, max_stall_ms, reason, due_at, queue)
select :journal, 'run', :tenant, :journal, :workflow, m.token_floor + 1, :nonce, :owner, :label, :reactor,
  :ttl_ms, :now + :ttl_ms, :now, :now, :now, :max_stall_ms, 'start', :now, $queue_id from meta m where m.one
then return cast(token as string) as token, acquired_at as now;

-- name: lease.holders
-- read
-- lease.backlogs, for held leases.
select distinct l.held as tenant, l.workflow from leases@{force_index=leases_held, $sparse} l
where l.held is not null and (:tenant is null or l.held = :tenant)
order by 1, 2 limit :limit;

-- name: lease.limit
-- fenced
-- writes: leases
update leases set max_stall_ms = :max_stall_ms where journal = :journal and kind = 'run';

-- name: lease.list
-- read
-- Of one tenant, newest first: held leases, or its named leases, its newest runs and their items.
with d as (select j as journal from $shards s
  cross join unnest(array(select r.journal from runs@{force_index=runs_created} r
    where not :held and r.tenant = :tenant and r.shard = s order by r.created_at desc, r.born desc limit :limit)) j)
select $lease_columns, $slot_state, $queue_name,
  coalesce((select n.name from names@{force_index=names_journal} n where n.journal = l.journal), (select r.id from runs r where r.journal = l.journal and l.kind = 'run')) as name
from (
    select n.journal from names n where n.tenant = :tenant
    union all select h.journal from leases@{force_index=leases_held, $sparse} h where :held and h.held = :tenant
    union all select d.journal from d
    union all select i.journal from d join leases@{force_index=leases_items, $sparse} i on i.item_of = d.journal) x
  join leases l on l.journal = x.journal
where l.owner is not null or not :held
order by l.born desc limit :limit;

-- name: lease.by_nonce
-- read
-- The terms that a find with this nonce acquired, in case its response was lost. In the same backlogs as the find.
select l.journal from unnest(json_value_array(:workflows)) w join leases@{force_index=leases_held, $sparse} l
  on l.held = :tenant and l.workflow = w and l.owner = :owner and l.nonce = :nonce;

-- name: lease.pin
-- fenced
-- writes: leases
-- Under the term that the same transaction has started, or checked.
update leases set build = :build where journal = :journal and kind = 'run';

-- name: lease.pause
-- unfenced: an operator's pause; the plan takes the lease over first, so the former holder is fenced
-- writes: leases
update leases set paused = :paused where journal = :journal;

-- name: lease.backlogs
-- read
-- The backlogs that are not empty, of one tenant or of all. GoogleSQL has no recursion that could skip from one to the
-- next: the whole index of waiting work is scanned.
select distinct l.tenant, l.workflow from leases@{force_index=leases_due, $sparse} l
where l.next_reactor = :next_reactor and (:tenant is null or l.tenant = :tenant)
order by 1, 2 limit :limit;

-- name: lease.read
-- read
select $lease_columns, $slot_state, $queue_name,
  coalesce((select n.name from names@{force_index=names_journal} n where n.journal = l.journal),
    (select r.id from runs r where r.journal = l.journal and l.kind = 'run')) as name
from leases l where l.journal = :journal;

-- name: lease.release
-- fenced
-- writes: leases
-- The token is raised: otherwise a released holder could still write. The row is never deleted. A run that waits in a
-- queue stays there, whatever its holder asks for: only one with a slot, or without a place in a queue, is wanted.
update leases set token = token + 1, nonce = null, owner = null, label = null, reactor = null, expires_at = :now,
  doomed = false, open = :open, last_end_reason = :end_reason, next_reactor = case when $in_queue then null else $reactor_of end,
  due_at = :now + :delay_ms
where journal = :journal and (kind = 'name' or notes = :notes_taken);

-- name: lease.renew
-- fenced
-- writes: leases
-- Exact match of the term; the TTL stored in the row; an expired lease that was not taken may be renewed. A term that
-- declared maxStall and made no progress for longer is not renewed, and is marked so that the term history shows why.
-- The heartbeat reports progress late: its age counts, so that a stall is noticed one heartbeat earlier.
update leases set expires_at = :now + ttl_ms, renewals = renewals + 1,
  longest_gap_ms = greatest(longest_gap_ms, :now - renewed_at), renewed_at = :now,
  progress_at = case when :progress > progress then greatest(progress_at, :now - :progress_ago_ms) else progress_at end,
  progress = greatest(progress, :progress), progress_note = coalesce(:progress_note, progress_note),
  stalled = false
where journal = :journal and tenant = :tenant and token = :token and nonce = :nonce and not doomed
  and (max_stall_ms is null or :progress > progress or :now - progress_at <= max_stall_ms)
then return notes, ttl_ms;

-- name: lease.preload
-- read
-- Parked live runs whose timer fires soon. Reads only the tenant's next thousand timers of each shard: preloading is an
-- optimisation, not a duty.
select d.run as journal from $shards s
cross join unnest(array(
  select as struct t.run, t.due_at from timers@{force_index=timers_due, $sparse} t
  where t.waiting = :tenant and t.shard = s and t.due_at > :now and t.due_at <= :now + :ahead_ms order by t.due_at limit 1000)) d
join leases l on l.journal = d.run join runs r on r.journal = d.run
where l.owner is null and l.next_reactor is null and not l.paused and l.queue is null and r.phase = 'LIVE'
  and (l.build is null or l.build = :build)
  and (:served is null or r.workflow in unnest(json_value_array(:served)))
order by d.due_at limit :limit;

-- name: lease.stale
-- read
-- Expired holders of one tenant, of the given reactors and workflows. No index has the expiry, because every heartbeat
-- would update it: all held leases of these backlogs are read. The backlog without a name as in lease.due.
select l.journal from unnest(json_value_array(:workflows)) w join leases@{force_index=leases_held, $sparse} l
  on l.held = :tenant and l.workflow = w
where (l.expires_at <= :now or l.doomed) and l.reactor in unnest(split(:stale_of, ','))
  and (:kind is null or l.kind = :kind) and (l.build is null or l.build = :build)
  and (l.workflow <> '' or l.kind <> 'run' or :kind is null)
  and (:full is null or l.kind <> 'item'
    or coalesce((select coalesce(e.connector, e.name) from effects@{force_index=effects_item, $sparse} e where e.item = l.journal limit 1), '')
      not in unnest(json_value_array(:full)))
limit :limit;

-- name: lease.stall
-- unfenced: the store's verdict on a holder that renews without progress; its lease may be taken at once
-- writes: leases
update leases set stalled = true, expires_at = least(expires_at, :now)
where journal = :journal and tenant = :tenant and token = :token and nonce = :nonce and max_stall_ms is not null
  and :progress <= progress and :now - progress_at > max_stall_ms
then return journal;

-- name: lease.take
-- unfenced: this is the takeover itself, one conditional statement on (owner, token) as read
-- writes: leases
-- A run keeps its limit on stalls, which its creator or its driver has set.
update leases set token = greatest(token, (select m.token_floor from meta m where m.one)) + 1, nonce = :nonce, owner = :owner, label = :label,
  reactor = :reactor, ttl_ms = :ttl_ms, expires_at = :now + :ttl_ms, acquired_at = :now, reason = :reason,
  renewals = 0, renewed_at = :now, longest_gap_ms = 0, progress = 0, progress_at = :now, progress_note = null,
  max_stall_ms = case when kind = 'run' then max_stall_ms else :max_stall_ms end, doomed = false, stalled = false, next_reactor = null,
  last_end_reason = case when owner is null then last_end_reason else 'expired' end
where journal = :journal and token = :token and coalesce(owner = :previous_owner, owner is null and :previous_owner is null) and not paused
then return cast(token as string) as token, notes, checkpoint, begins, acquired_at as now;

-- name: lease.unserved
-- read
-- Runnable runs of these workflows that no process has claimed for a while. The oldest thousand of each shard are
-- counted: enough to show which workflow is unserved.
select x.workflow, x.due + x.held as runs, :now - least(coalesce(x.due_since, x.held_since), coalesce(x.held_since, x.due_since)) as lag_ms
from (select w as workflow,
  (select count(*) from (select l.journal from leases@{force_index=leases_due, $sparse} l where l.next_reactor = 'recovery' and l.tenant = :tenant and l.workflow = w
    and l.due_at <= :now - :min_lag_ms and not l.paused limit 1000)) as due,
  (select min(l.due_at) from leases@{force_index=leases_due, $sparse} l where l.next_reactor = 'recovery' and l.tenant = :tenant and l.workflow = w
    and l.due_at <= :now - :min_lag_ms and not l.paused) as due_since,
  (select count(*) from leases@{force_index=leases_held, $sparse} l where l.held = :tenant
    and l.workflow = w and l.expires_at <= :now - :min_lag_ms and l.build is null) as held,
  (select min(l.expires_at) from leases@{force_index=leases_held, $sparse} l where l.held = :tenant
    and l.workflow = w and l.expires_at <= :now - :min_lag_ms and l.build is null) as held_since
  from unnest(json_value_array(:workflows)) w) x
where x.due + x.held > 0 order by x.workflow;

-- name: lease.wake
-- fenced
-- writes: leases
update leases set next_reactor = $reactor_of, due_at = :now + :delay_ms where journal = :journal and owner is null and open;

-- name: leases.doom
-- unfenced: after a restore every earlier term is over; writes of its holder are rejected from this commit on
-- writes: leases
update leases set doomed = true, expires_at = :now, last_end_reason = 'superseded' where owner is not null;

-- name: leases.shown
-- read
-- lease.read for the runs of one page, in one query.
select $lease_columns, $slot_state, $queue_name, (select r.id from runs r where r.journal = l.journal) as name
from leases l where l.journal in unnest(:journals);

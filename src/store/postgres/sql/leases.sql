-- macro: tape.on_timeline()
-- Whether the server is the one that the store knows, evaluated once per statement. The planner inlines the function
-- (see the migrations) because its argument is a column; with a sub-select as its argument it would call it. A
-- connection of ours has noted its server's timeline (see connections.ts): if that is the recorded one, the function,
-- whose exception block is a subtransaction, is not called.
(select case when m.timeline = current_setting('durable_tape.timeline', true) then true
  else tape.on_timeline(m.timeline) end from tape.meta m);

-- macro: $recovery_of
-- The reactor that drives the run of the lease that is updated: see src/model/build.ts.
('recovery' || coalesce('@' || build, ''));

-- macro: $reactor_of
-- The reactor that a writer asks for; a run that is pinned waits for its build.
(:next_reactor || case when :next_reactor = 'recovery' and build is not null then '@' || build else '' end);

-- name: fence
-- read
-- THE FENCE (see src/model/fence.ts). FOR KEY SHARE together with the unique index leases_fence(journal, token) makes
-- the token a key column: a takeover changes it and so waits for us, while heartbeats (non-key) pass. A writer that had
-- to wait for a takeover re-evaluates to no row. Unlocked, or without that index, a stale write commits after a
-- takeover; FOR SHARE would block our own heartbeat. The head is checked by record.append, with a newer snapshot. No
-- row while the server's timeline is not the recorded one: a promoted standby may have lost what a holder has seen, and
-- no earlier term may write on top of that. IS NOT DISTINCT FROM keeps the lookup on the journal's own key, whatever
-- other index begins with the tenant.
select l.kind, l.tenant, l.run, l.notes, l.queue from tape.leases l
where l.journal = :journal and l.tenant is not distinct from :tenant and l.token = :token and l.nonce = :nonce and not l.doomed
  and tape.on_timeline()
for key share;

-- name: fence.release
-- read
-- The fence of a write that ends its term. It changes the token itself, so it takes the stronger lock at once: two
-- holders of a key share that both want more would wait for each other.
select l.kind, l.tenant, l.run, l.notes, l.queue from tape.leases l
where l.journal = :journal and l.tenant is not distinct from :tenant and l.token = :token and l.nonce = :nonce and not l.doomed
  and tape.on_timeline()
for update;

-- name: fence.explain
-- read
-- Why the fence returned no row; nothing if the journal is another tenant's.
select cast(l.token as text) as token, cast(l.nonce as text) as nonce, l.doomed or not tape.on_timeline() as doomed,
  l.kind, l.notes, l.owner, l.label, l.reactor, l.reason,
  (select max(r.seq) from tape.records r where r.journal = l.journal) as head
from tape.leases l where l.journal = :journal and l.tenant is not distinct from :tenant;

-- name: lease.begin
-- fenced
-- writes: leases
-- A new generation of a run, whose record is :seq. Its positions and its notes come after those of the earlier ones.
update tape.leases set begins = :seq, begins_pos = :pos, begins_notes = :notes_taken
where journal = :journal and kind = 'run' and begins < :seq and begins_pos < :pos and begins_notes <= :notes_taken and notes >= :notes_taken;

-- name: lease.create
-- unfenced: the row of a journal that is created in the same transaction; it cannot have a holder yet
-- writes: leases
insert into tape.leases(journal, kind, tenant, run, workflow, token, ttl_ms, expires_at, acquired_at, renewed_at, progress_at, max_stall_ms,
  next_reactor, due_at, queue)
values (:journal, :kind, coalesce(:tenant, (select s.tenant from tape.leases s where s.journal = :source)), :run, :workflow, :token,
        0, tape.now_ms(), tape.now_ms(), tape.now_ms(), tape.now_ms(), :max_stall_ms, :next_reactor, tape.now_ms(), $queue_id);

-- name: lease.doom
-- unfenced: announces a takeover that could not get its lock at once
-- writes: leases
-- Not a key column, so it does not wait for open guarded transactions. From this commit on no new one can start, so the
-- takeover cannot starve behind them.
update tape.leases set doomed = true
where journal = :journal and token = :token and owner is not null and (:force or expires_at <= tape.now_ms());

-- name: lease.due
-- read
-- Work of one tenant that waits for a reactor, oldest first in each of these workflows. The index holds only such work,
-- backlog by backlog, and rows of other backlogs are not read. Items are in the backlog without a name; so is a run
-- created by a process of an older version, whose workflow is looked up. The time is in a sub-select because a volatile function
-- is no index condition: rows due later would be scanned. Items whose callee is at capacity are skipped.
select l.journal from (select distinct json_array_elements_text(:workflows::json) as workflow) w
cross join lateral (
  select x.journal, x.due_at from tape.leases x where x.next_reactor = :next_reactor and x.tenant = :tenant and x.workflow = w.workflow
    and x.due_at <= (select tape.now_ms()) and not x.paused and (:kind::text is null or x.kind || '' = :kind)
    and (x.workflow <> '' or x.kind || '' <> 'run' or :kind::text is null or (select r.workflow from tape.runs r where r.journal = x.journal)
      = any(array(select json_array_elements_text(:workflows::json))))
    and (:full::text is null or x.kind || '' <> 'item'
      or coalesce((select coalesce(e.connector, e.name) from tape.effects e where e.item = x.journal limit 1), '')
        <> all(array(select json_array_elements_text(:full::json))))
  order by x.due_at limit :limit) l
order by l.due_at limit :limit;

-- name: lease.first
-- unfenced: the row of a run that is created in the same transaction, with its creator's first term already started
-- writes: leases
insert into tape.leases(journal, kind, tenant, run, workflow, token, nonce, owner, label, reactor, ttl_ms, expires_at, acquired_at,
  renewed_at, progress_at, max_stall_ms, reason, due_at, queue)
select :journal, 'run', :tenant, :journal, :workflow, m.token_floor + 1, :nonce, :owner, :label, :reactor, :ttl_ms,
  t.now + :ttl_ms, t.now, t.now, t.now, :max_stall_ms, 'start', t.now, $queue_id
from tape.meta m cross join (select tape.now_ms() as now) t
returning cast(token as text) as token;

-- name: lease.holders
-- read
-- lease.backlogs, for held leases.
with recursive q(journal, tenant, workflow) as (
  (select l.journal, l.tenant, l.workflow from tape.leases l where l.owner is not null and l.kind <> 'name'
    and l.tenant >= coalesce(:tenant, '') order by l.tenant, l.workflow limit 1)
  union all
  select n.journal, n.tenant, n.workflow from q cross join lateral (
    select * from (
      (select l.journal, l.tenant, l.workflow from tape.leases l where l.owner is not null and l.kind <> 'name'
        and l.tenant = q.tenant and l.workflow > q.workflow order by l.workflow limit 1)
      union all
      (select l.journal, l.tenant, l.workflow from tape.leases l where :tenant::text is null and l.owner is not null and l.kind <> 'name'
        and l.tenant > q.tenant order by l.tenant, l.workflow limit 1)) e
    order by e.tenant, e.workflow limit 1) n)
select q.tenant, q.workflow from q where :tenant::text is null or q.tenant = :tenant limit :limit;

-- name: lease.limit
-- fenced
-- writes: leases
update tape.leases set max_stall_ms = :max_stall_ms where journal = :journal and kind = 'run';

-- name: lease.list
-- read
-- Of one tenant, newest first: held leases, or its named leases, its newest runs and their items.
select l.journal, l.kind, l.tenant, l.run, l.owner, l.label, l.reactor, l.ttl_ms, l.expires_at, l.acquired_at, l.reason,
  l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at, l.progress_note, l.max_stall_ms, l.doomed, l.paused,
  l.stalled, l.notes, l.open, l.next_reactor, l.due_at, l.last_end_reason, l.workflow, l.build, l.checkpoint, $slot_state, $queue_name,
  cast(l.token as text) as token, cast(l.nonce as text) as nonce, tape.now_ms() as now,
  coalesce((select n.name from tape.names n where n.journal = l.journal limit 1),
    (select r.id from tape.runs r where r.journal = l.journal and l.kind = 'run')) as name
from (
    select n.journal from tape.names n where n.tenant = :tenant
    union all select h.journal from tape.leases h where :held and h.owner is not null and h.kind <> 'name' and h.tenant = :tenant
    union all (select r.journal from tape.runs r where not :held and r.tenant = :tenant
      order by r.created_at desc, r.journal desc limit :limit)
    union all select i.journal from (
        select r.journal from tape.runs r where not :held and r.tenant = :tenant
        order by r.created_at desc, r.journal desc limit :limit) r
      cross join lateral (select i.journal from tape.leases i where i.run = r.journal and i.kind = 'item' offset 0) i) x
  cross join lateral (select l.journal, l.kind, l.tenant, l.run, l.token, l.nonce, l.owner, l.label, l.reactor, l.ttl_ms,
    l.expires_at, l.acquired_at, l.reason, l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at,
    l.progress_note, l.max_stall_ms, l.doomed, l.paused, l.stalled, l.notes, l.open, l.next_reactor, l.due_at, l.last_end_reason,
    l.workflow, l.build, l.checkpoint, l.queue from tape.leases l where l.journal = x.journal offset 0) l
where l.owner is not null or not :held
order by l.journal desc limit :limit;

-- name: lease.by_nonce
-- read
-- The terms that a find with this nonce acquired, in case its response was lost. In the same backlogs as the find.
select l.journal from (select distinct json_array_elements_text(:workflows::json) as workflow) w
cross join lateral (select x.journal from tape.leases x where x.owner is not null and x.kind <> 'name' and x.tenant = :tenant
  and x.workflow = w.workflow and x.owner = :owner and x.nonce = :nonce) l;

-- name: lease.pin
-- fenced
-- writes: leases
-- Under the term that the same transaction has started, or checked.
update tape.leases set build = :build where journal = :journal and kind = 'run';

-- name: lease.pause
-- unfenced: an operator's pause; the plan takes the lease over first, so the former holder is fenced
-- writes: leases
update tape.leases set paused = :paused where journal = :journal;

-- name: lease.backlogs
-- read
-- The backlogs that are not empty, of one tenant or of all: one index lookup for each, never a scan.
with recursive q(journal, tenant, workflow) as (
  (select l.journal, l.tenant, l.workflow from tape.leases l where l.next_reactor = :next_reactor and l.tenant >= coalesce(:tenant, '')
    order by l.tenant, l.workflow limit 1)
  union all
  select n.journal, n.tenant, n.workflow from q cross join lateral (
    select * from (
      (select l.journal, l.tenant, l.workflow from tape.leases l where l.next_reactor = :next_reactor and l.tenant = q.tenant and l.workflow > q.workflow
        order by l.workflow limit 1)
      union all
      (select l.journal, l.tenant, l.workflow from tape.leases l where :tenant::text is null and l.next_reactor = :next_reactor and l.tenant > q.tenant
        order by l.tenant, l.workflow limit 1)) e
    order by e.tenant, e.workflow limit 1) n)
select q.tenant, q.workflow from q where :tenant::text is null or q.tenant = :tenant limit :limit;

-- name: lease.read
-- read
select l.journal, l.kind, l.tenant, l.run, l.owner, l.label, l.reactor, l.ttl_ms, l.expires_at, l.acquired_at, l.reason,
  l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at, l.progress_note, l.max_stall_ms, l.doomed, l.paused,
  l.stalled, l.notes, l.open, l.next_reactor, l.due_at, l.last_end_reason, l.workflow, l.build, l.checkpoint, l.begins, $slot_state, $queue_name,
  cast(l.token as text) as token, cast(l.nonce as text) as nonce, tape.now_ms() as now,
  coalesce(n.name, r.id) as name
from tape.leases l left join tape.names n on n.journal = l.journal left join tape.runs r on r.journal = l.journal and l.kind = 'run'
where l.journal = :journal;

-- name: lease.release
-- fenced
-- writes: leases
-- The token is raised: otherwise a released holder could still write. The row is never deleted. A run that waits in a
-- queue stays there, whatever its holder asks for: only one with a slot, or without a place in a queue, is wanted.
update tape.leases set token = token + 1, nonce = null, owner = null, label = null, reactor = null, expires_at = tape.now_ms(),
  doomed = false, open = :open, last_end_reason = :end_reason, next_reactor = case when $in_queue then null else $reactor_of end,
  due_at = tape.now_ms() + :delay_ms
where journal = :journal and (kind = 'name' or notes = :notes_taken);

-- name: lease.renew
-- fenced
-- writes: leases
-- Exact match of the term; the TTL stored in the row; an expired lease that was not taken may be renewed. A term that
-- declared maxStall and made no progress for longer is not renewed, and is marked so that the term history shows why.
-- The heartbeat reports progress late: its age counts, so that a stall is noticed one heartbeat earlier.
-- The timeline as in `fence`.
update tape.leases set expires_at = tape.now_ms() + ttl_ms, renewals = renewals + 1,
  longest_gap_ms = greatest(longest_gap_ms, tape.now_ms() - renewed_at), renewed_at = tape.now_ms(),
  progress_at = case when :progress > progress then greatest(progress_at, tape.now_ms() - :progress_ago_ms) else progress_at end,
  progress = greatest(progress, :progress), progress_note = coalesce(:progress_note, progress_note),
  stalled = false
where journal = :journal and tenant is not distinct from :tenant and token = :token and nonce = :nonce and not doomed
  and (max_stall_ms is null or :progress > progress or tape.now_ms() - progress_at <= max_stall_ms)
  and tape.on_timeline()
returning notes, ttl_ms;

-- name: lease.preload
-- read
-- Parked live runs whose timer fires soon, in the order of the index of timers. Reads only the tenant's next thousand
-- timers: preloading is an optimisation, not a duty. The time as in lease.due.
select t.run as journal from (
    select run, due_at from tape.timers where status = 'SET' and tenant = :tenant and due_at > (select tape.now_ms())
      and due_at <= (select tape.now_ms() + :ahead_ms::bigint) order by due_at limit 1000) t
  cross join lateral (select 1 from tape.leases l where l.journal = t.run and l.owner is null and l.next_reactor is null and not l.paused and l.queue is null
    and (l.build is null or l.build = :build) limit 1) l
  cross join lateral (select r.workflow from tape.runs r where r.journal = t.run and r.phase || '' = 'LIVE' limit 1) r
where :served::text is null or r.workflow = any(array(select json_array_elements_text(:served::json)))
order by t.due_at limit :limit;

-- name: lease.stale
-- read
-- Expired holders of one tenant, of the given reactors and workflows. No index has the expiry, because every heartbeat
-- would update it: all held leases of these backlogs are read. The backlog without a name as in lease.due.
select l.journal from (select distinct json_array_elements_text(:workflows::json) as workflow) w
cross join lateral (
  select x.journal from tape.leases x where x.owner is not null and x.kind <> 'name' and x.tenant = :tenant and x.workflow = w.workflow
    and (x.expires_at <= (select tape.now_ms()) or x.doomed) and x.reactor = any(string_to_array(:stale_of, ','))
    and (:kind::text is null or x.kind = :kind) and (x.build is null or x.build = :build)
    and (x.workflow <> '' or x.kind <> 'run' or :kind::text is null or (select r.workflow from tape.runs r where r.journal = x.journal)
      = any(array(select json_array_elements_text(:workflows::json))))
    and (:full::text is null or x.kind || '' <> 'item'
      or coalesce((select coalesce(e.connector, e.name) from tape.effects e where e.item = x.journal limit 1), '')
        <> all(array(select json_array_elements_text(:full::json))))
  limit :limit) l
limit :limit;

-- name: lease.stall
-- unfenced: the store's verdict on a holder that renews without progress; its lease may be taken at once
-- writes: leases
update tape.leases set stalled = true, expires_at = least(expires_at, tape.now_ms())
where journal = :journal and tenant is not distinct from :tenant and token = :token and nonce = :nonce and max_stall_ms is not null
  and :progress <= progress and tape.now_ms() - progress_at > max_stall_ms
  and tape.on_timeline()
returning journal;

-- name: lease.take
-- unfenced: this is the takeover itself, one conditional statement on (owner, token) as read
-- writes: leases
-- Issues no token while the server's timeline is not the recorded one: a promoted standby may have lost tokens, and the
-- epoch must be raised first. A run keeps its limit on stalls, which its creator or its driver has set.
update tape.leases set token = greatest(token, (select token_floor from tape.meta)) + 1, nonce = :nonce, owner = :owner, label = :label,
  reactor = :reactor, ttl_ms = :ttl_ms, expires_at = tape.now_ms() + :ttl_ms, acquired_at = tape.now_ms(), reason = :reason,
  renewals = 0, renewed_at = tape.now_ms(), longest_gap_ms = 0, progress = 0, progress_at = tape.now_ms(), progress_note = null,
  max_stall_ms = case when kind = 'run' then max_stall_ms else :max_stall_ms end, doomed = false, stalled = false, next_reactor = null,
  last_end_reason = case when owner is null then last_end_reason else 'expired' end
where journal = :journal and token = :token and owner is not distinct from :previous_owner and not paused
  and tape.on_timeline()
returning cast(token as text) as token, notes, checkpoint, begins;

-- name: lease.unserved
-- read
-- Runnable runs of these workflows that no process has claimed for a while. The oldest thousand of each backlog are
-- counted: enough to show which workflow is unserved.
select w.workflow, d.runs + h.runs as runs, tape.now_ms() - least(d.since, h.since) as lag_ms
from (select distinct json_array_elements_text(:workflows::json) as workflow) w
cross join lateral (select count(*) as runs, min(x.due_at) as since from (
  select l.due_at from tape.leases l where l.next_reactor = 'recovery' and l.tenant = :tenant and l.workflow = w.workflow
    and l.due_at <= (select tape.now_ms()) - :min_lag_ms::bigint and not l.paused order by l.due_at limit 1000) x) d
cross join lateral (select count(*) as runs, min(l.expires_at) as since from tape.leases l
  where l.owner is not null and l.kind <> 'name' and l.tenant = :tenant and l.workflow = w.workflow
    and l.expires_at <= (select tape.now_ms()) - :min_lag_ms::bigint and l.build is null) h
where d.runs + h.runs > 0 order by w.workflow;

-- name: lease.wake
-- fenced
-- writes: leases
update tape.leases set next_reactor = $reactor_of, due_at = tape.now_ms() + :delay_ms where journal = :journal and owner is null and open;

-- name: leases.doom
-- unfenced: after a restore every earlier term is over; writes of its holder are rejected from this commit on
-- writes: leases
update tape.leases set doomed = true, expires_at = tape.now_ms(), last_end_reason = 'superseded'
where owner is not null and (kind <> 'name' or journal in (select n.journal from tape.names n));

-- name: leases.shown
-- read
-- lease.read for the runs of one page, in one query.
select l.journal, l.kind, l.tenant, l.run, l.owner, l.label, l.reactor, l.ttl_ms, l.expires_at, l.acquired_at, l.reason,
  l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at, l.progress_note, l.max_stall_ms, l.doomed, l.paused,
  l.stalled, l.notes, l.open, l.next_reactor, l.due_at, l.last_end_reason, l.workflow, l.build, $slot_state, $queue_name,
  cast(l.token as text) as token, cast(l.nonce as text) as nonce, tape.now_ms() as now,
  (select r.id from tape.runs r where r.journal = l.journal) as name
from json_array_elements_text(:journals::json) i(journal)
cross join lateral (select l.journal, l.kind, l.tenant, l.run, l.token, l.nonce, l.owner, l.label, l.reactor, l.ttl_ms,
  l.expires_at, l.acquired_at, l.reason, l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at,
  l.progress_note, l.max_stall_ms, l.doomed, l.paused, l.stalled, l.notes, l.open, l.next_reactor, l.due_at, l.last_end_reason, l.workflow, l.build,
  l.queue from tape.leases l where l.journal = i.journal::bigint limit 1) l;

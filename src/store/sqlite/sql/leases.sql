-- macro: $recovery_of
-- The reactor that drives the run of the lease that is updated: see src/model/build.ts.
('recovery' || coalesce('@' || build, ''));

-- macro: $reactor_of
-- The reactor that a writer asks for; a run that is pinned waits for its build.
(:next_reactor || case when :next_reactor = 'recovery' and build is not null then '@' || build else '' end);

-- name: fence
-- read
-- THE FENCE (see src/model/fence.ts). Runs inside BEGIN IMMEDIATE, which no takeover can overlap: what it reads holds
-- until our commit. Returns a row only if tenant, token, nonce and head are the writer's own.
select l.kind, l.tenant, l.run, l.notes, l.queue from leases l
where l.journal = :journal and l.tenant = :tenant and l.token = :token and l.nonce = :nonce and l.doomed = 0
  and exists (select 1 from records p where p.journal = :journal and p.seq = :after)
  and not exists (select 1 from records s where s.journal = :journal and s.seq = :after + 1);

-- name: fence.explain
-- read
-- Why the fence returned no row; nothing if the journal is another tenant's.
select cast(l.token as text) as token, cast(l.nonce as text) as nonce, l.doomed, l.kind, l.notes, l.owner, l.label, l.reactor, l.reason,
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
values (:journal, :kind, coalesce(:tenant, (select s.tenant from leases s where s.journal = :source)), :run, :workflow, :token,
        0, :now, :now, :now, :now, :max_stall_ms, :next_reactor, :now, $queue_id);

-- name: lease.doom
-- unfenced: announces a takeover; needed only where a takeover could starve behind open guarded transactions
-- writes: leases
update leases set doomed = 1
where journal = :journal and token = :token and owner is not null and (:force or expires_at <= :now);

-- name: lease.due
-- read
-- Work of one tenant that waits for a reactor, oldest first in each of these workflows. The index holds only such work,
-- backlog by backlog, and rows of other backlogs are not read. Items are in the backlog without a name; so is a run
-- created by a process of an older version, whose workflow is looked up. Items whose callee is at capacity are skipped.
-- The index is named: :next_reactor could select leases_recovery, so SQLite would plan again for every value, which takes
-- several times as long as the query.
select l.journal from json_each(:workflows) w cross join leases l
where l.journal in (
  select x.journal from leases x indexed by leases_due where x.next_reactor = :next_reactor and x.tenant = :tenant and x.workflow = w.value and x.due_at <= :now
    and x.paused = 0 and (:kind is null or x.kind = :kind)
    and (x.workflow <> '' or x.kind <> 'run' or :kind is null
      or (select r.workflow from runs r where r.journal = x.journal) in (select i.value from json_each(:workflows) i))
    and (:full is null or x.kind <> 'item'
      or coalesce((select coalesce(e.connector, e.name) from effects e where e.item = x.journal), '')
        not in (select g.value from json_each(:full) g))
  order by x.due_at limit :limit)
order by l.due_at limit :limit;

-- name: lease.first
-- unfenced: the row of a run that is created in the same transaction, with its creator's first term already started
-- writes: leases
insert into leases(journal, kind, tenant, run, workflow, token, nonce, owner, label, reactor, ttl_ms, expires_at, acquired_at,
  renewed_at, progress_at, max_stall_ms, reason, due_at, queue)
values (:journal, 'run', :tenant, :journal, :workflow, :token, :nonce, :owner, :label, :reactor,
  :ttl_ms, :now + :ttl_ms, :now, :now, :now, :max_stall_ms, 'start', :now, $queue_id);

-- name: lease.holders
-- read
-- lease.backlogs, for held leases.
with recursive q(journal) as (
  select (select l.journal from leases l where l.owner is not null and l.kind <> 'name' and l.tenant >= coalesce(:tenant, '')
    order by l.tenant, l.workflow limit 1)
  union all
  select coalesce(
    (select l.journal from leases l where l.owner is not null and l.kind <> 'name' and l.tenant = x.tenant
      and l.workflow > x.workflow order by l.workflow limit 1),
    (select l.journal from leases l where :tenant is null and l.owner is not null and l.kind <> 'name'
      and l.tenant > x.tenant order by l.tenant, l.workflow limit 1))
  from q cross join leases x on x.journal = q.journal
  limit :limit)
select l.tenant, l.workflow from q cross join leases l on l.journal = q.journal where :tenant is null or l.tenant = :tenant;

-- name: lease.limit
-- fenced
-- writes: leases
update leases set max_stall_ms = :max_stall_ms where journal = :journal and kind = 'run';

-- name: lease.list
-- read
-- Of one tenant, newest first: held leases, or its named leases, its newest runs and their items.
select l.journal, l.kind, l.tenant, l.run, l.owner, l.label, l.reactor, l.ttl_ms, l.expires_at, l.acquired_at, l.reason,
  l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at, l.progress_note, l.max_stall_ms, l.doomed, l.paused,
  l.stalled, l.notes, l.open, l.next_reactor, l.due_at, l.last_end_reason, l.workflow, l.build, l.checkpoint, $slot_state, $queue_name,
  cast(l.token as text) as token, cast(l.nonce as text) as nonce, :now as now,
  coalesce((select n.name from names n where n.journal = l.journal), (select r.id from runs r where r.journal = l.journal and l.kind = 'run')) as name
from (
    select n.journal from names n where n.tenant = :tenant
    union all select h.journal from leases h indexed by leases_held
      where :held and h.owner is not null and h.kind <> 'name' and h.tenant = :tenant
    union all select d.journal from (select journal from runs where not :held and tenant = :tenant order by created_at desc, journal desc limit :limit) d
    union all select i.journal from (select journal from runs where not :held and tenant = :tenant order by created_at desc, journal desc limit :limit) d
      cross join leases i on i.run = d.journal and i.kind = 'item') x
  cross join leases l on l.journal = x.journal
where l.owner is not null or not :held
order by l.journal desc limit :limit;

-- name: lease.by_nonce
-- read
-- The terms that a find with this nonce acquired, in case its response was lost. In the same backlogs as the find.
select l.journal from json_each(:workflows) w cross join leases l indexed by leases_held
where l.owner is not null and l.kind <> 'name' and l.tenant = :tenant and l.workflow = w.value
  and l.owner = :owner and l.nonce = :nonce;

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
-- The backlogs that are not empty, of one tenant or of all: one index lookup for each, never a scan. The index is
-- named for the reason given at lease.due.
with recursive q(journal) as (
  select (select l.journal from leases l indexed by leases_due where l.next_reactor = :next_reactor and l.tenant >= coalesce(:tenant, '')
    order by l.tenant, l.workflow limit 1)
  union all
  select coalesce(
    (select l.journal from leases l indexed by leases_due where l.next_reactor = :next_reactor and l.tenant = x.tenant and l.workflow > x.workflow
      order by l.workflow limit 1),
    (select l.journal from leases l indexed by leases_due where :tenant is null and l.next_reactor = :next_reactor and l.tenant > x.tenant
      order by l.tenant, l.workflow limit 1))
  from q cross join leases x on x.journal = q.journal
  limit :limit)
select l.tenant, l.workflow from q cross join leases l on l.journal = q.journal where :tenant is null or l.tenant = :tenant;

-- name: lease.read
-- read
select l.journal, l.kind, l.tenant, l.run, l.owner, l.label, l.reactor, l.ttl_ms, l.expires_at, l.acquired_at, l.reason,
  l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at, l.progress_note, l.max_stall_ms, l.doomed, l.paused,
  l.stalled, l.notes, l.open, l.next_reactor, l.due_at, l.last_end_reason, l.workflow, l.build, l.checkpoint, l.begins, $slot_state, $queue_name,
  cast(l.token as text) as token, cast(l.nonce as text) as nonce, :now as now,
  coalesce(n.name, r.id) as name
from leases l left join names n on n.journal = l.journal left join runs r on r.journal = l.journal and l.kind = 'run'
where l.journal = :journal;

-- name: lease.release
-- fenced
-- writes: leases
-- The token is raised: otherwise a released holder could still write. The row is never deleted. A run that waits in a
-- queue stays there, whatever its holder asks for: only one with a slot, or without a place in a queue, is wanted.
update leases set token = token + 1, nonce = null, owner = null, label = null, reactor = null, expires_at = :now,
  doomed = 0, open = :open, last_end_reason = :end_reason, next_reactor = case when $in_queue then null else $reactor_of end,
  due_at = :now + :delay_ms
where journal = :journal and (kind = 'name' or notes = :notes_taken);

-- name: lease.renew
-- fenced
-- writes: leases
-- Exact match of the term; the TTL stored in the row; an expired lease that was not taken may be renewed. A term that
-- declared maxStall and made no progress for longer is not renewed, and is marked so that the term history shows why.
-- The heartbeat reports progress late: its age counts, so that a stall is noticed one heartbeat earlier.
update leases set expires_at = :now + ttl_ms, renewals = renewals + 1,
  longest_gap_ms = max(longest_gap_ms, :now - renewed_at), renewed_at = :now,
  progress_at = case when :progress > progress then max(progress_at, :now - :progress_ago_ms) else progress_at end,
  progress = max(progress, :progress), progress_note = coalesce(:progress_note, progress_note),
  stalled = 0
where journal = :journal and tenant = :tenant and token = :token and nonce = :nonce and doomed = 0
  and (max_stall_ms is null or :progress > progress or :now - progress_at <= max_stall_ms)
returning notes, ttl_ms;

-- name: lease.preload
-- read
-- Parked live runs whose timer fires soon, by each timer's own clock and in the order of the index. Reads only the
-- tenant's next thousand timers of each kind: preloading is an optimisation, not a duty.
select d.run as journal from (
  select * from (select run, due_at - :at as in_ms from timers
    where status = 'SET' and tenant = :tenant and steady = 0 and due_at > :at and due_at <= :at + :ahead_ms
    order by due_at limit 1000)
  union all
  select * from (select run, due_at - :steady from timers
    where status = 'SET' and tenant = :tenant and steady = 1 and due_at > :steady and due_at <= :steady + :ahead_ms
    order by due_at limit 1000)) d
  cross join leases l on l.journal = d.run cross join runs r on r.journal = d.run
where l.owner is null and l.next_reactor is null and l.paused = 0 and l.queue is null and r.phase = 'LIVE'
  and (l.build is null or l.build = :build)
  and (:served is null or r.workflow in (select i.value from json_each(:served) i))
order by d.in_ms limit :limit;

-- name: lease.stale
-- read
-- Expired holders of one tenant, of the given reactors and workflows. No index has the expiry, because every heartbeat
-- would update it: all held leases of these backlogs are read. The backlog without a name as in lease.due.
select l.journal from json_each(:workflows) w cross join leases l indexed by leases_held
where l.owner is not null and l.kind <> 'name' and l.tenant = :tenant and l.workflow = w.value
  and (l.expires_at <= :now or l.doomed = 1) and instr(',' || :stale_of || ',', ',' || l.reactor || ',') > 0
  and (:kind is null or l.kind = :kind) and (l.build is null or l.build = :build)
  and (l.workflow <> '' or l.kind <> 'run' or :kind is null
    or (select r.workflow from runs r where r.journal = l.journal) in (select i.value from json_each(:workflows) i))
  and (:full is null or l.kind <> 'item'
    or coalesce((select coalesce(e.connector, e.name) from effects e where e.item = l.journal), '')
      not in (select g.value from json_each(:full) g))
limit :limit;

-- name: lease.stall
-- unfenced: the store's verdict on a holder that renews without progress; its lease may be taken at once
-- writes: leases
update leases set stalled = 1, expires_at = min(expires_at, :now)
where journal = :journal and tenant = :tenant and token = :token and nonce = :nonce and max_stall_ms is not null
  and :progress <= progress and :now - progress_at > max_stall_ms
returning journal;

-- name: lease.take
-- unfenced: this is the takeover itself, one conditional statement on (owner, token) as read
-- writes: leases
-- A run keeps its limit on stalls, which its creator or its driver has set.
update leases set token = max(token, (select token_floor from meta)) + 1, nonce = :nonce, owner = :owner, label = :label,
  reactor = :reactor, ttl_ms = :ttl_ms, expires_at = :now + :ttl_ms, acquired_at = :now, reason = :reason,
  renewals = 0, renewed_at = :now, longest_gap_ms = 0, progress = 0, progress_at = :now, progress_note = null,
  max_stall_ms = case when kind = 'run' then max_stall_ms else :max_stall_ms end, doomed = 0, stalled = 0, next_reactor = null,
  last_end_reason = case when owner is null then last_end_reason else 'expired' end
where journal = :journal and token = :token and owner is :previous_owner and paused = 0
returning cast(token as text) as token, notes, checkpoint, begins;

-- name: lease.unserved
-- read
-- Runnable runs of these workflows that no process has claimed for a while. The oldest thousand of each backlog are
-- counted: enough to show which workflow is unserved.
select x.workflow, x.due + x.held as runs, :now - min(coalesce(x.due_since, x.held_since), coalesce(x.held_since, x.due_since)) as lag_ms
from (select w.value as workflow,
  (select count(*) from (select 1 from leases where next_reactor = 'recovery' and tenant = :tenant and workflow = w.value
    and due_at <= :now - :min_lag_ms and paused = 0 limit 1000)) as due,
  (select due_at from leases where next_reactor = 'recovery' and tenant = :tenant and workflow = w.value
    and due_at <= :now - :min_lag_ms and paused = 0 order by due_at limit 1) as due_since,
  (select count(*) from leases indexed by leases_held where owner is not null and kind <> 'name' and tenant = :tenant
    and workflow = w.value and expires_at <= :now - :min_lag_ms and build is null) as held,
  (select min(expires_at) from leases indexed by leases_held where owner is not null and kind <> 'name' and tenant = :tenant
    and workflow = w.value and expires_at <= :now - :min_lag_ms and build is null) as held_since
  from json_each(:workflows) w) x
where x.due + x.held > 0 order by x.workflow;

-- name: lease.wake
-- fenced
-- writes: leases
update leases set next_reactor = $reactor_of, due_at = :now + :delay_ms where journal = :journal and owner is null and open = 1;

-- name: leases.doom
-- unfenced: after a restore every earlier term is over; writes of its holder are rejected from this commit on
-- writes: leases
update leases set doomed = 1, expires_at = :now, last_end_reason = 'superseded'
where journal in (select journal from leases where owner is not null and kind <> 'name' union all select n.journal from names n)
  and owner is not null;

-- name: leases.reboot
-- unfenced: the machine was restarted and with it the lease clock, so every earlier term has expired
-- writes: leases
update leases set expires_at = :now, acquired_at = :now, renewed_at = :now, progress_at = :now, due_at = :now
where journal in (select journal from leases where next_reactor is not null
  union all select journal from leases where owner is not null and kind <> 'name'
  union all select n.journal from names n) and (owner is not null or next_reactor is not null);

-- name: leases.shown
-- read
-- lease.read for the runs of one page, in one query.
select l.journal, l.kind, l.tenant, l.run, l.owner, l.label, l.reactor, l.ttl_ms, l.expires_at, l.acquired_at, l.reason,
  l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at, l.progress_note, l.max_stall_ms, l.doomed, l.paused,
  l.stalled, l.notes, l.open, l.next_reactor, l.due_at, l.last_end_reason, l.workflow, l.build, $slot_state, $queue_name,
  cast(l.token as text) as token, cast(l.nonce as text) as nonce, :now as now,
  (select r.id from runs r where r.journal = l.journal) as name
from json_each(:journals) i cross join leases l on l.journal = i.value;

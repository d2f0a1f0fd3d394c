-- macro: $due
-- The work of one tenant that is due, by reactor. Each count stops at :cap. A holder whose lease has expired is work, too,
-- and so are the free slots of queues.
select d.reactor, least(sum(d.n), :cap) as n, max(d.late_ms) as late_ms from (
  select case when starts_with(q.reactor, 'recovery@') then 'recovery' else q.reactor end as reactor, 1 as n, :now - x.due_at as late_ms
  from (select reactor from unnest(['recovery', 'reconciler', 'outbox', 'compensation']) reactor
    union all select 'recovery@' || b.build from builds b where b.tenant = :tenant) q
  cross join unnest(array(select as struct l.due_at from leases@{force_index=leases_due, $sparse} l where l.next_reactor = q.reactor and l.tenant = :tenant
    and l.due_at <= :now and not l.paused order by l.due_at limit :cap)) x
  union all
  select h.reactor, 1, greatest(0, :now - h.expires_at) from (select l.expires_at,
      case when l.kind = 'run' then 'recovery' when l.reactor = 'compensation' then l.reactor else 'reconciler' end as reactor
    from leases@{force_index=leases_held, $sparse} l where l.held = :tenant and (l.expires_at <= :now or l.doomed) limit :cap) h
  union all
  select 'timers', 1, :now - t.due_at from (select t.due_at from timers@{force_index=timers_due, $sparse} t
    where t.waiting = :tenant and t.due_at <= :now order by t.due_at limit :cap) t
  union all
  select 'timers', 1, :now - s.next_at from (select s.next_at from schedules@{force_index=schedules_due, $sparse} s
    where s.waiting = :tenant and s.next_at <= :now order by s.next_at limit :cap) s
  union all
  select 'recovery', least(:cap, coalesce(q.concurrency - $running_in, :cap),
    (select coalesce(sum(least(p.waiting, coalesce(p.cap - p.running, p.waiting))), 0)
      from (select p.waiting, p.cap, p.running from queue_partitions@{force_index=queue_partitions_ready, $sparse} p where p.ready = q.id limit :cap) p)), 0
  from queues@{force_index=queues_name} q where q.tenant = :tenant and q.pause is null
    and coalesce(div(q.tat - (q.rate_burst - 1) * q.rate_us + 999, 1000) <= :now, true)) d
where d.n > 0 group by d.reactor;

-- name: work.due
-- read
select d.reactor, d.n, d.late_ms from ($due) d;

-- name: census
-- read
-- What operators watch, in one statement. No count reads more than :cap rows that match. WAITING is missing: it is the
-- absence of a holder, a reactor and a slot, and counting it would read every run. Leases of runs that are ending,
-- compensating or stuck are subtracted: these runs are few, and looking up the phase of all others would take longer.
with e as (
  select r.phase, l.owner is not null as held, l.owner is null and l.next_reactor is not null as waits
  from runs@{force_index=runs_phase, $sparse} r join leases l on l.journal = r.journal
  where r.tenant = :tenant and r.notable in ('ENDING', 'COMPENSATING', 'STUCK') limit :cap)
select 'due' as what, d.reactor as label, d.n, d.late_ms as ms from ($due) d
union all
select 'runs', p, (select least(count(*), :cap) from e where e.phase = p), null
from unnest(['ENDING', 'COMPENSATING', 'STUCK']) p
union all
select 'runs', 'RUNNING', greatest(0, (select count(*) from (select l.journal from leases@{force_index=leases_held, $sparse} l
  where l.held = :tenant and l.kind = 'run' limit :cap))
  - (select count(*) from e where e.held)), null
union all
select 'runs', 'RUNNABLE', greatest(0, (select count(*) from (select l.journal from leases@{force_index=leases_recovery, $sparse} l
  where l.runnable = :tenant limit :cap))
  + (select count(*) from (select l.journal from leases@{force_index=leases_pinned, $sparse} l where l.pinned = :tenant limit :cap))
  - (select count(*) from e where e.waits)), null
union all
select 'runs', 'QUEUED', (select count(*) from (select s.journal from queues@{force_index=queues_name} q join queue_slots@{force_index=queue_slots_waiting, $sparse} s on s.queued = q.id
  where q.tenant = :tenant limit :cap)), null
union all
select x.role, 'UNKNOWN', count(*), :now - min(x.changed_at) from (select e.role, e.changed_at from effects@{force_index=effects_open, $sparse} e
  where e.tenant = :tenant and e.pending = 'UNKNOWN' order by e.changed_at limit :cap) x group by x.role
union all
select x.role, 'STUCK', count(*), :now - min(x.changed_at) from (select e.role, e.changed_at from effects@{force_index=effects_open, $sparse} e
  where e.tenant = :tenant and e.pending = 'STUCK' order by e.changed_at limit :cap) x group by x.role
union all
select 'held', x.kind, count(*), null from (select l.kind from leases@{force_index=leases_held, $sparse} l
  where l.held = :tenant limit :cap) x group by x.kind
union all
select 'held', 'name', (select count(*) from (select n.journal from names n join leases l on l.journal = n.journal
  where n.tenant = :tenant and l.owner is not null limit :cap)), null;

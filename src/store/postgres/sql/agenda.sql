-- read
-- When each reactor next has something to do, in one look for all of them: an idle process asks nothing else. The row
-- without a name is the next holder whose time runs out: its item may be any reactor's. LIMIT 1 in the order of the
-- index, not min(): that would read everything that asks for a reactor some day.
select n.name as reactor, (select l.due_at from tape.leases l where l.wants = n.name and not l.paused
    and (:tenant is null or l.tenant = :tenant) order by l.due_at limit 1) - tape.now_ms() as in_ms
from (values ('recovery'), ('reconciler'), ('outbox'), ('compensation')) n(name)
union all
select null, min(case when l.doomed then 0 else l.expires_at end) - tape.now_ms() from tape.leases l
where l.owner is not null and l.kind <> 'name' and (:tenant is null or l.tenant = :tenant)
union all
select 'timers', min(x.due_at) - tape.now_ms() from (
  select (select due_at from tape.timers where status = 'SET' and (:tenant is null or tenant = :tenant)
    order by due_at limit 1) as due_at
  union all select (select next_at from tape.schedules where next_at is not null and not paused
    and (:tenant is null or tenant = :tenant) order by next_at limit 1)) x

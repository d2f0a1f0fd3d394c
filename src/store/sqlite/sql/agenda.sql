-- read
-- When each reactor next has something to do, in one look for all of them: an idle process asks nothing else. The row
-- without a name is the next holder whose time runs out: its item may be any reactor's. LIMIT 1 in the order of the
-- index, not min(): that would read everything that asks for a reactor some day.
with n(name) as (values ('recovery'), ('reconciler'), ('outbox'), ('compensation'))
select n.name as reactor, (select l.due_at from leases l where l.wants = n.name and l.paused = 0
    and (:tenant is null or l.tenant = :tenant) order by l.due_at limit 1) - :now as in_ms
from n
union all
select null, min(case when l.doomed = 1 then 0 else l.expires_at end) - :now from leases l
where l.owner is not null and l.kind <> 'name' and (:tenant is null or l.tenant = :tenant)
union all
select 'timers', min(x.due_at) - :at from (
  select (select due_at from timers where status = 'SET' and (:tenant is null or tenant = :tenant)
    order by due_at limit 1) as due_at
  union all select (select next_at from schedules where next_at is not null and paused = 0
    and (:tenant is null or tenant = :tenant) order by next_at limit 1)) x

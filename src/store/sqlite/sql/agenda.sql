-- read
-- When each reactor next has something to do, in one look for all of them: an idle process asks nothing else. The row
-- without a name is the next holder whose time runs out: its item may be any reactor's. Queue by queue, and of each the
-- first entry: nothing of another queue is looked at, however much lies there.
select q.value ->> 0 as reactor, min((select l.due_at from leases l where l.wants = q.value ->> 0 and l.tenant = q.value ->> 1
    and l.workflow = q.value ->> 2 and l.paused = 0 order by l.due_at limit 1)) - :now as in_ms
from json_each(:queues) q group by 1
union all
select null, min(case when l.doomed = 1 then 0 else l.expires_at end) - :now
from json_each(:holders) h cross join leases l indexed by leases_held
where l.owner is not null and l.kind <> 'name' and l.tenant = h.value ->> 0 and l.workflow = h.value ->> 1
union all
select 'timers', min(x.in_ms) from (
  select (select due_at from timers where status = 'SET' and tenant = i.value and steady = 0 order by due_at limit 1) - :at as in_ms
  from json_each(:tenants) i
  union all
  select (select due_at from timers where status = 'SET' and tenant = i.value and steady = 1 order by due_at limit 1) - :steady
  from json_each(:tenants) i
  union all
  select (select next_at from schedules where next_at is not null and paused = 0 and tenant = i.value order by next_at limit 1) - :at
  from json_each(:tenants) i) x

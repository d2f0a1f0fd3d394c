-- read
-- When each reactor next has something to do, in one look for all of them: an idle process asks nothing else. The row
-- without a name is the next holder whose time runs out: its item may be any reactor's. Queue by queue, and of each the
-- first entry: nothing of another queue is looked at, however much lies there.
select q.queue ->> 0 as reactor, min((select l.due_at from tape.leases l where l.wants = q.queue ->> 0 and l.tenant = q.queue ->> 1
    and l.workflow = q.queue ->> 2 and not l.paused order by l.due_at limit 1)) - tape.now_ms() as in_ms
from json_array_elements(:queues::json) q(queue) group by 1
union all
select null, min(h.until) - tape.now_ms() from (
  select (select min(case when l.doomed then 0 else l.expires_at end) from tape.leases l
    where l.owner is not null and l.kind <> 'name' and l.tenant = q.queue ->> 0 and l.workflow = q.queue ->> 1) as until
  from json_array_elements(:holders::json) q(queue)) h
union all
select 'timers', min(x.due_at) - tape.now_ms() from (
  select (select due_at from tape.timers where status = 'SET' and tenant = i.tenant order by due_at limit 1) as due_at
  from json_array_elements_text(:tenants::json) i(tenant)
  union all
  select (select next_at from tape.schedules where next_at is not null and not paused and tenant = i.tenant order by next_at limit 1)
  from json_array_elements_text(:tenants::json) i(tenant)) x

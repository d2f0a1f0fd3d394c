-- read
-- Each kind by its own clock, and within it in the order of the index, so that LIMIT ends the look early.
select * from (
  select * from (select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at from timers t indexed by timers_tenant
    where t.tenant = :tenant and t.steady = 0 order by t.due_at, t.run, t.pos limit :limit)
  union all
  select * from (select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at + :at - :steady from timers t indexed by timers_tenant
    where t.tenant = :tenant and t.steady = 1 order by t.due_at, t.run, t.pos limit :limit)) x
order by x.due_at, x.run, x.pos limit :limit

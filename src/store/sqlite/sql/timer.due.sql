-- read
-- Each kind by its own clock, and within it in the order of the index, so that LIMIT ends the look early.
select x.run, x.pos, x.purpose, x.tenant, x.status, x.due_at, x.late_ms from (
  select * from (select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at, :at - t.due_at as late_ms from timers t
    where t.status = 'SET' and t.tenant = :tenant and t.steady = 0 and t.due_at <= :at order by t.due_at limit :limit)
  union all
  select * from (select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at + :at - :steady, :steady - t.due_at from timers t
    where t.status = 'SET' and t.tenant = :tenant and t.steady = 1 and t.due_at <= :steady order by t.due_at limit :limit)) x
order by x.late_ms desc, x.run, x.pos limit :limit

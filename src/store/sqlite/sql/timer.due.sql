-- read
select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at, :at - t.due_at as late_ms from timers t
where t.status = 'SET' and t.tenant = :tenant and t.due_at <= :at order by t.due_at limit :limit

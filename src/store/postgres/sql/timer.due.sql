-- read
-- The time in a sub-select: see lease.due.
select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at, tape.now_ms() - t.due_at as late_ms from tape.timers t
where t.status = 'SET' and t.tenant = :tenant and t.due_at <= (select tape.now_ms()) order by t.due_at limit :limit

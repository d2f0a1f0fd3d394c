-- read
select t.*, tape.now_ms() - t.due_at as late_ms from tape.timers t where t.status = 'SET' and t.due_at <= tape.now_ms() order by t.due_at limit :limit

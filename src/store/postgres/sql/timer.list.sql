-- read
select run, pos, purpose, tenant, status, due_at from tape.timers where tenant = :tenant order by due_at, run, pos limit :limit

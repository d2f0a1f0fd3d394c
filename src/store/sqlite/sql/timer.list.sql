-- read
select * from timers where tenant = :tenant and (:run is null or run = :run) order by due_at, run, pos limit :limit

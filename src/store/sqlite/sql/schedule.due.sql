-- read
select * from schedules where next_at <= :at and paused = 0 and tenant = :tenant order by next_at limit :limit

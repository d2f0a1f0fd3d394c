-- read
select * from schedules where next_at <= :at and paused = 0 order by next_at limit :limit

-- read
select * from tape.schedules where next_at <= tape.now_ms() and not paused order by next_at limit :limit

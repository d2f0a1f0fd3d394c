-- read
select min(x.due_at) - :at as in_ms from (
  select (select min(due_at) from timers where status = 'SET') as due_at
  union all select (select min(next_at) from schedules where next_at is not null and paused = 0)) x

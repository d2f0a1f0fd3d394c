-- read
select min(x.due_at) - tape.now_ms() as in_ms from (
  select (select min(due_at) from tape.timers where status = 'SET') as due_at
  union all select (select min(next_at) from tape.schedules where next_at is not null and not paused)) x

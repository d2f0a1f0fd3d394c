-- read
-- The time in a sub-select: see lease.due.
select tenant, id, version, spec, next_at, paused
  from tape.schedules where next_at <= (select tape.now_ms()) and not paused and tenant = :tenant order by next_at limit :limit

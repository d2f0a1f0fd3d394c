-- read
select tenant, id, version, spec, next_at, paused
  from schedules where next_at <= :at and paused = 0 and tenant = :tenant order by next_at limit :limit

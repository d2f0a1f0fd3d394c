-- read
select tenant, id, version, spec, next_at, paused from schedules where tenant = :tenant and id > :above order by id limit :limit

-- unfenced: a setting, written from outside; CAS on what its writer has read
update schedules set version = version + 1, spec = :spec, next_at = :next_at, paused = :paused
where tenant = :tenant and id = :id and version = :version and spec = :seen
returning tenant, id, version, spec, next_at, paused

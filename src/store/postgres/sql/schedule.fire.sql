-- unfenced: one conditional transaction; the version is the fence, so each firing starts its runs once. Never early.
update tape.schedules set version = version + 1, next_at = :next_at, spec = coalesce(:spec, spec)
where tenant = :tenant and id = :id and version = :version and next_at <= tape.now_ms() and not paused
  and (:seen is null or spec = :seen)

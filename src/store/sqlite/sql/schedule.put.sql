-- unfenced: a setting, written from outside
insert into schedules(tenant, id, version, spec, next_at, paused) values (:tenant, :id, 1, :spec, :next_at, :paused)
on conflict(tenant, id) do update set version = schedules.version + 1, spec = excluded.spec, next_at = excluded.next_at,
  paused = excluded.paused
where not :fresh
returning *

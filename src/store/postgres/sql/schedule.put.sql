-- unfenced: a setting, written from outside; a new one of a tenant with a quota only where it was admitted
insert into tape.schedules(tenant, id, version, spec, next_at, paused)
select :tenant, :id, 1, :spec, :next_at, :paused
where :admitted or exists (select 1 from tape.schedules s where s.tenant = :tenant and s.id = :id)
  or not exists (select 1 from tape.quotas q where q.tenant in (:tenant, '') and q.schedules is not null)
on conflict(tenant, id) do update set version = schedules.version + 1, spec = excluded.spec, next_at = excluded.next_at,
  paused = excluded.paused
where not :fresh
returning tenant, id, version, spec, next_at, paused

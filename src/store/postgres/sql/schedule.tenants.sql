-- read
-- Who has schedules that wait for their time, as timer.tenants.
with recursive q(tenant) as (
  select min(tenant) from tape.schedules where next_at is not null and not paused
  union all
  select (select min(x.tenant) from tape.schedules x where x.next_at is not null and not x.paused and x.tenant > q.tenant)
  from q where q.tenant is not null)
select tenant from q where tenant is not null limit :limit

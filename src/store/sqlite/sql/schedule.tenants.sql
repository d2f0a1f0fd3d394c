-- read
-- Who has schedules that wait for their time, as timer.tenants.
with recursive q(tenant) as (
  select min(tenant) from schedules where next_at is not null and paused = 0
  union all
  select (select min(x.tenant) from schedules x where x.next_at is not null and x.paused = 0 and x.tenant > q.tenant)
  from q where q.tenant is not null
  limit :limit)
select tenant from q where tenant is not null

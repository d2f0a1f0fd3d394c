-- read
-- Who has timers set: one look-up in the index for each, never a walk.
with recursive q(tenant) as (
  select min(tenant) from timers where status = 'SET'
  union all
  select (select min(x.tenant) from timers x where x.status = 'SET' and x.tenant > q.tenant) from q where q.tenant is not null
  limit :limit)
select tenant from q where tenant is not null

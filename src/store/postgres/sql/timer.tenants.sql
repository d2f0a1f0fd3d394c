-- read
-- Who has timers set: one look-up in the index for each, never a walk.
with recursive q(tenant) as (
  select min(tenant) from tape.timers where status = 'SET'
  union all
  select (select min(x.tenant) from tape.timers x where x.status = 'SET' and x.tenant > q.tenant) from q where q.tenant is not null)
select tenant from q where tenant is not null limit :limit

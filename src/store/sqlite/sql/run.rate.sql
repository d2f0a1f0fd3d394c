-- read
-- How many runs began and ended in each stretch of time, counted up to :limit in each: by the indexes of those times.
with recursive b(at, n) as (values (:since, 1) union all select at + :size, n + 1 from b where n < :buckets)
select b.at,
  (select count(*) from (select 1 from runs r where r.tenant = :tenant
    and r.created_at >= b.at and r.created_at < b.at + :size limit :limit)) as started,
  (select count(*) from (select 1 from runs r where r.tenant = :tenant and r.ended_at is not null
    and r.ended_at >= b.at and r.ended_at < b.at + :size limit :limit)) as ended,
  (select count(*) from (select r.cause from runs r where r.tenant = :tenant and r.ended_at is not null
    and r.ended_at >= b.at and r.ended_at < b.at + :size limit :limit) x where x.cause = 'failed') as failed
from b

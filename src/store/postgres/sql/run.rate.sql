-- read
-- How many runs began and ended in each stretch of time, counted up to :limit in each: by the indexes of those times.
select b.at,
  (select count(*) from (select 1 from tape.runs r where r.tenant = :tenant
    and r.created_at >= b.at and r.created_at < b.at + :size limit :limit) x) as started,
  (select count(*) from (select 1 from tape.runs r where r.tenant = :tenant and r.ended_at is not null
    and r.ended_at >= b.at and r.ended_at < b.at + :size limit :limit) x) as ended,
  (select count(*) from (select r.cause from tape.runs r where r.tenant = :tenant and r.ended_at is not null
    and r.ended_at >= b.at and r.ended_at < b.at + :size limit :limit) x where x.cause = 'failed') as failed
from (select :since + :size * g.n as at from generate_series(0, :buckets - 1) g(n)) b order by b.at

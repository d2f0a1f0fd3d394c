-- read
-- Where a run stands in a list: what a page goes on behind.
select id, created_at, ended_at from runs where journal = :journal and tenant = :tenant

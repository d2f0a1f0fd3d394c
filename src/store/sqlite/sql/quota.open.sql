-- read
-- By the index of what is counted, which holds nothing of tenants without a limit.
select count(*) as n from runs where tenant = :tenant and counted = 1 and ended_at is null

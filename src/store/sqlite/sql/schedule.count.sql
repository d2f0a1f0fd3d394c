-- read
select count(*) as n from schedules where tenant = :tenant

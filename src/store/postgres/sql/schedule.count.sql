-- read
select count(*) as n from tape.schedules where tenant = :tenant

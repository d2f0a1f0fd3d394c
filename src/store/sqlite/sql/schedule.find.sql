-- read
select version from schedules where tenant = :tenant and id = :id

-- read
select version from tape.schedules where tenant = :tenant and id = :id

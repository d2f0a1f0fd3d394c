-- read
select * from tape.schedules where tenant = :tenant and id > :above order by id limit :limit

-- read
select * from schedules where tenant = :tenant and id > :above order by id limit :limit

-- read
select * from schedules where tenant = :tenant order by id

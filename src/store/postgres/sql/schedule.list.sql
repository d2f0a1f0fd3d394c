-- read
select * from tape.schedules where tenant = :tenant order by id

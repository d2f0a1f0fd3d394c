-- unfenced: a setting, written from outside
delete from schedules where tenant = :tenant and id = :id

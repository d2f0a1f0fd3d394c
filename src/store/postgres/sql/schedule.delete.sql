-- unfenced: a setting, written from outside
delete from tape.schedules where tenant = :tenant and id = :id

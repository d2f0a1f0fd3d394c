-- unfenced: the process itself says that it goes
delete from tape.processes where tenant = :tenant and owner = :owner

-- unfenced: the process itself says that it goes
delete from processes where tenant = :tenant and owner = :owner

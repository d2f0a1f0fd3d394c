-- read
select journal from tape.names where tenant = :tenant and name = :name

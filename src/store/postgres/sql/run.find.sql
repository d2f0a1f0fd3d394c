-- read
select * from tape.runs where tenant = :tenant and id = :id

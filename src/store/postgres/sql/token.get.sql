-- read
select * from tape.tokens where id = :id

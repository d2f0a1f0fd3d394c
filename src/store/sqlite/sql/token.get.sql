-- read
select * from tokens where id = :id

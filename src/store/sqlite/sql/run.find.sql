-- read
select * from runs where tenant = :tenant and id = :id

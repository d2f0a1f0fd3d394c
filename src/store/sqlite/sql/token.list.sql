-- read
select * from tokens where :tenant is null or tenant = :tenant order by created_at, id

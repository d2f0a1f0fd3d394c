-- read
select * from gates where tenant = :tenant order by opened_at, run, pos limit :limit

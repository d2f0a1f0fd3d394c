-- read
select * from gates where tenant = :tenant and status = 'OPEN' order by opened_at, run, pos limit :limit

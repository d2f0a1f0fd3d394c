-- read
select * from gates where run = :run and +tenant = :tenant and (not :open or status = 'OPEN')
order by opened_at, run, pos limit :limit

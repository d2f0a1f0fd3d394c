-- read
select * from gates where tenant = :tenant and (:run is null or run = :run) and (not :open or status = 'OPEN')
order by opened_at, run, pos limit :limit

-- read
select * from tape.vals where tenant = :tenant and starts_with(key, :prefix) and value is not null
order by key limit :limit

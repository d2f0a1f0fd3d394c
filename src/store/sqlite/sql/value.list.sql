-- read
select * from vals where tenant = :tenant and substr(key, 1, length(:prefix)) = :prefix and value is not null
order by key limit :limit

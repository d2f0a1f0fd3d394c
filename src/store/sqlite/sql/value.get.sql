-- read
select * from vals where tenant = :tenant and key = :key

-- read
select * from tape.vals where tenant = :tenant and key = :key

-- read
select hash, answer from repeats where tenant = :tenant and key = :key

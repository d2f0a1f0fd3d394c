-- read
select hash, answer from tape.repeats where tenant = :tenant and key = :key

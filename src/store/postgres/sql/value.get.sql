-- read
select tenant, key, version, value, at from tape.vals where tenant = :tenant and key = :key

-- read
select tenant, key, version, value, at from vals where tenant = :tenant and key = :key

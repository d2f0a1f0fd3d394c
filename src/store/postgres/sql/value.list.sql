-- read
-- By key; a page goes on behind :above.
select tenant, key, version, value, at
  from tape.vals where tenant = :tenant and starts_with(key, :prefix) and value is not null and key > :above
order by key limit :limit

-- read
-- By key; a page goes on behind :above.
select tenant, key, version, value, at
  from vals where tenant = :tenant and substr(key, 1, length(:prefix)) = :prefix and value is not null and key > :above
order by key limit :limit

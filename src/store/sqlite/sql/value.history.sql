-- read
select tenant, key, version, value, at
  from val_log where tenant = :tenant and key = :key and version > :after order by version limit :limit

-- read
select tenant, key, version, value, at
  from tape.val_log where tenant = :tenant and key = :key and version > :after order by version limit :limit

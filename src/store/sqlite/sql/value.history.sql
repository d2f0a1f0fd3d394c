-- read
select * from val_log where tenant = :tenant and key = :key and version > :after order by version limit :limit

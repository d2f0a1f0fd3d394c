-- unfenced: history older than is kept for watchers
delete from val_log where key = :key and version <= :through
  and tenant = coalesce(:tenant, (select s.tenant from leases s where s.journal = :source))

-- unfenced: history older than is kept for watchers
delete from tape.val_log where key = :key and version <= :through
  and tenant = coalesce(:tenant, (select s.tenant from tape.leases s where s.journal = :source))

-- unfenced: written with value.put, for those who watch
insert into tape.val_log(tenant, key, version, value, at)
values (coalesce(:tenant, (select s.tenant from tape.leases s where s.journal = :source)), :key, :version, :value, tape.now_ms())

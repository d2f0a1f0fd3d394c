-- unfenced: written with value.put, for those who watch
insert into val_log(tenant, key, version, value, at)
values (coalesce(:tenant, (select s.tenant from leases s where s.journal = :source)), :key, :version, :value, :at)

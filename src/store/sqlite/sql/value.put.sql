-- unfenced: CAS on the version, which grows for ever, also across a delete; from inside a run the append is fenced
insert into vals(tenant, key, version, value, at)
select x.tenant, :key, :version, :value, :at
from (select coalesce(:tenant, (select s.tenant from leases s where s.journal = :source)) as tenant) x
where :version = 1 or exists (select 1 from vals v where v.tenant = x.tenant and v.key = :key)
on conflict(tenant, key) do update set version = excluded.version, value = excluded.value, at = excluded.at
where vals.version = excluded.version - 1

-- unfenced: CAS on the version, which grows for ever, also across a delete; from inside a run the append is fenced
insert into tape.vals(tenant, key, version, value, at)
select x.tenant, :key, :version, :value, tape.now_ms()
from (select coalesce(:tenant, (select s.tenant from tape.leases s where s.journal = :source)) as tenant) x
where :version = 1 or exists (select 1 from tape.vals v where v.tenant = x.tenant and v.key = :key)
on conflict(tenant, key) do update set version = excluded.version, value = excluded.value, at = excluded.at
where vals.version = excluded.version - 1

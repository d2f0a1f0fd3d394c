-- fenced
insert into tape.effects(run, pos, sub, tenant, root, role, name, connector, semantics, dispatch, status, authority, item, key,
  business_key, args_hash, args, policy, surplus, created_at, changed_at)
select :run, :pos, :sub, r.tenant, r.root, :role, :name, :connector, :semantics, :dispatch, :status, :authority, :item, :key,
  :business_key, :args_hash, :args, :policy, :surplus, tape.now_ms(), tape.now_ms()
from tape.runs r
where r.journal = :run and r.tenant is not distinct from :tenant and (:run = :source or exists (select 1 from tape.leases s where s.journal = :source and s.run = :run))
  and (:role = 'inverse' or r.phase = 'LIVE')
on conflict do nothing

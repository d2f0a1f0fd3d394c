-- fenced
update leases set wants = null where run = :run and kind = 'item' and owner is null and exists (
  select 1 from effects e where e.run = :run and e.item = leases.journal and e.status = 'WITHDRAWN')
